"""Every text of the panels under the grid: the cliff, who sees what, and the test that a visitor takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from app.texts import attacks as attack_texts
from app.texts import numbers, privacy
from engine.results import attack_summary

if TYPE_CHECKING:
    from engine.results.cliff import Cliff, CliffPoint


class ShownEpsilon(Protocol):
    """An ε of the ledger: all that has to be said of it here."""

    @property
    def view(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def epsilon(self) -> float | None: ...
    @property
    def delta(self) -> float: ...


MORE = "Look further"
PANELS = {"cliff": "The cliff", "ladder": "Who sees what", "test": "Can you tell?"}
NO_ATTACK = "None of the chosen attacks fits this model, so there is nothing to measure."
BUSY = ("other attacks of yours are still under way", "Wait for them, or cancel them")
ONLY_CONTROL = "Choose a protection in the grid to see it beside no protection."

# --- the cliff ---------------------------------------------------------------------------------------------

CLIFF = "How much noise makes the picture disappear?"
MEASURE, MEASURE_REST = "Measure the cliff ({many})", "Measure the rest ({many})"
EPSILON_OF = "ε as seen by"
REGION = "we expect<br>the picture to<br>disappear here"
REGION_LEFT, REGION_RIGHT = "expected:<br>it comes back", "expected:<br>noise drowns it"
NO_NOISE = "no noise"
RATIO = "noise / signal: how loud the noise is beside the upload"
BEST = "best PSNR, dB: lower is more private"
OR_MORE = "60+"
SHAPES = {
    "converged": "the attack converged",
    "not converged": "it did not converge",
    "diverged": "it diverged",
}
CAME_BACK = f"in this colour: more than {attack_summary.BETTER:g} dB above {attack_texts.GREY}"
WHEN = {
    "sooner": "that is sooner than we expected",
    "inside": "that is where we expected it",
    "later": "that is later than we expected",
}
SAYS_NOTHING = "No attack succeeded even without noise, so this says nothing about protection."

# --- the ladder --------------------------------------------------------------------------------------------

LADDER = "The same upload, seen by four different adversaries"
PROTECTION, BY = "Protection", "Attack"
ASK_LADDER = "Let them all try ({many})"
ADVERSARIES = {
    "server": "The curious server",
    "aggregate": "The server under secure aggregation",
    "client": "Another participant",
    "outsider": "An outsider",
}
HOLDS = {
    "server": "It reads each upload by itself.",
    "aggregate": "It reads only the sum of a round's uploads, never one of them.",
    "client": "It takes part, and holds the model it is sent before the round and the one after it.",
    "outsider": "It never takes part, and holds only the models that are published before and after the round.",
}
GREY = "A grey square of its mean colour reaches {value}."
NOT_HERE = "not possible here"
EMPTY = "No picture yet"

# --- the test ----------------------------------------------------------------------------------------------


# --- sentences ---------------------------------------------------------------------------------------------


def measure(missing: int, of: int) -> str:
    return (MEASURE if missing == of else MEASURE_REST).format(many=attack_texts.count(missing))


def ladder(missing: int, of: int) -> str:
    return ASK_LADDER.format(many=attack_texts.count(missing))


def expected(parameters: int, least: float, most: float) -> str:
    """Where the picture is expected to disappear, as noise a visitor may set."""
    return (
        "We expect the picture to disappear where the noise is between a tenth of the signal and as loud as it. "
        f"In one upload that is noise {least:.2g} to {most:.2g}, wherever the clip binds: "
        f"0.1/√d to 1/√d for the d = {parameters:,} parameters of this model."
    )


def unbound(signal: float, bound: float) -> str:
    """Why the noise is louder than its multiplier says."""
    return (
        f"Here the clip does not bind: this upload is {signal:.2g} long and may be {bound:.2g}, "
        f"so the same noise is {bound / signal:.2g} times as loud beside it."
    )


def verdict(found: Cliff, region: tuple[float, float]) -> str:
    """What the measured points say; empty while they say nothing yet."""
    control = found.control
    if control is None or not found.complete:
        return ""
    if not (control.leaks and found.worked):
        return SAYS_NOTHING
    last, first = found.last_open, found.first_held
    came = f"Without noise the picture comes back: {attack_texts.decibel(control.psnr)}."
    if first is None:
        return f"{came} At every noise measured here it does so, too."
    still = f" It still does at noise / signal {last.ratio:.2g}." if last else ""
    held = f"From {first.ratio:.2g} on no attack beat {attack_texts.GREY} by more than {attack_summary.BETTER:g} dB"
    return f"{came}{still} {held}: {WHEN[found.when(region)]}."


def point(one: CliffPoint, epsilon: str) -> str:
    """What a pointer over a point reads."""
    noise = NO_NOISE if one.noise is None else f"noise {one.noise:.3g}, noise / signal {one.ratio:.2g}"
    state = attack_texts.STATES.get(one.state, one.state)
    why = f": {one.reason}" if one.reason else ""
    part = "" if one.done == one.of else f"<br>so far {one.done} of {attack_texts.count(one.of)}"
    return f"{attack_texts.decibel(one.psnr)} by {one.attack}<br>{noise}<br>{state}{why}{part}<br>{epsilon}"


def axis(answer: ShownEpsilon | None, view: str) -> str:
    """The words without which the ε on top mean nothing."""
    if answer is None:
        return f"no ε {privacy.SEEN_BY[view]}"
    return f"ε of the whole run, {terms(answer)}"


def terms(answer: ShownEpsilon) -> str:
    per = "client" if answer.unit == "user" else "picture"
    return f"per {per}, {privacy.SEEN_BY[answer.view]}, δ = {numbers.tiny(answer.delta)}"


def epsilon(answer: ShownEpsilon | None) -> str:
    """ε with its view, unit and δ."""
    if answer is None or answer.epsilon is None:
        return "Nothing is promised here: there is no finite ε."
    return f"{attack_texts.epsilon(answer.epsilon, True)} ({terms(answer)})"


def bare(value: float | None) -> str:
    """ε as a tick, beside an axis that says whose it is."""
    return attack_texts.epsilon(value, True).removeprefix("ε ")


def cliff_alt(found: Cliff, view: str) -> str:
    """The chart in words."""
    lead = (
        f"Best PSNR by noise over signal, with ε {privacy.SEEN_BY[view]} on top. "
        "The picture is expected to disappear from 0.1 to 1."
    )
    control = f" Without noise {attack_texts.decibel(found.control.psnr)}." if found.control else ""
    told = [
        f"at {one.ratio:.2g} {attack_texts.decibel(one.psnr)}, {attack_texts.STATES.get(one.state, one.state)}"
        for one in found.points
    ]
    plain = f" {attack_texts.GREY.capitalize()} reaches {attack_texts.decibel(found.trivial)}." if found.trivial else ""
    return f"{lead}{control}{' Measured: ' + '; '.join(told) + '.' if told else ' Nothing is measured yet.'}{plain}"


# --- the ladder


def rung(view: str, state: str, psnr: float | None, column: str) -> str:
    near = "" if psnr is None else f", {attack_texts.decibel(psnr)}"
    return f"What {ADVERSARIES[view][0].lower()}{ADVERSARIES[view][1:]} got back with {column}: {state}{near}"


# --- the test
