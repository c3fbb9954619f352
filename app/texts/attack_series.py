"""The texts of the panels under the grid: the cliff, the ladder of observers, and the blind test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.texts import attacks as attack_texts
from app.texts import numbers, privacy
from app.texts import verdicts as verdict_texts
from engine.epsilon import Epsilon
from engine.results.verdict import COMES_BACK

if TYPE_CHECKING:
    from engine.results.cliff import Cliff, CliffPoint


MORE = "Look closer"
PANELS = {
    "cliff": "How much noise hides it?",
    "ladder": "Who sees what?",
    "test": "Can you tell?",
    "scores": "All scores",
    "curves": "Scores by iteration",
    "upload": "All pictures of the upload",
    "promises": "What is promised?",
    "attacks": "How the attacks work",
}
NO_ATTACK = "None of the chosen attacks fits this model, so there is nothing to measure."
BUSY = ("other attacks of yours are still under way", "Wait for them, or cancel them")
ONLY_CONTROL = "Choose a protection in the grid to see it beside no protection."

# --- the cliff ---------------------------------------------------------------------------------------------

CLIFF = "How much noise hides the picture?"
MEASURE, MEASURE_REST = "Measure the cliff ({many})", "Measure the rest ({many})"
EPSILON_OF = "ε as seen by"
REGION = "we expect<br>the picture to<br>disappear here"
REGION_LEFT, REGION_RIGHT = "expected:<br>it comes back", "expected:<br>noise drowns it"
NO_NOISE = "no noise"
RATIO = "noise / signal: how loud the noise is beside the upload"
BEST = "best PSNR, dB: lower is more private"
OR_MORE = "60+"
CAME_BACK = "in this colour: something of the picture comes back"
WHEN = {
    "sooner": "that is sooner than we expected",
    "inside": "that is where we expected it",
    "later": "that is later than we expected",
}
SAYS_NOTHING = "No attack brought the picture back even without noise, so this says nothing about protection."
ALWAYS = "At every noise measured here something of it comes back, too."

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
    "client": "It takes part, holds the models it is sent before and after the round, and subtracts its own upload.",
    "outsider": "It never takes part, and holds only the models that are published before and after the round.",
}
GREY = "A grey square of its mean colour reaches {value}."
NOT_HERE = "not possible here"
EMPTY = "No picture yet"

# --- sentences ---------------------------------------------------------------------------------------------


def measure(missing: int, of: int) -> str:
    """The label of the button of the cliff."""
    return (MEASURE if missing == of else MEASURE_REST).format(many=attack_texts.count(missing))


def ladder(missing: int, of: int) -> str:
    """The label of the button of the ladder."""
    return ASK_LADDER.format(many=attack_texts.count(missing))


def expected(
    region: tuple[float, float], noises: tuple[float, float], parameters: int, pixels: int, cheats: bool = False
) -> str:
    """The forecast of the noise that hides the picture, also in the unit that a visitor sets."""
    low, high = region
    least, most = noises
    here = f"Here they are {parameters:,} for {pixels:,}."
    if cheats:
        here = f"{here} But the server sends a larger model, so expect the picture to survive more noise than this."
    return (
        f"We expect the picture to disappear where the noise is {low:.2g} to {high:.2g} times as large as the signal. "
        f"In one upload that is noise {least:.2g} to {most:.2g}, wherever the clip binds. "
        "The more parameters there are for each pixel value, the more noise it takes. "
        f"{here} The region was measured with a few networks and attacks. A stronger attack may see through more noise."
    )


def protection(method: str, split: str) -> str:
    """The protection whose noise grows from point to point, and who adds it."""
    return f"Every point is {method}: {split}."


def unbound(signal: float, bound: float) -> str:
    """The reason why the noise is louder than its multiplier suggests."""
    return (
        f"Here the clip does not bind: this upload is {signal:.2g} long and may be {bound:.2g}, "
        f"so the same noise is {bound / signal:.2g} times as loud beside it."
    )


def verdict(cliff: Cliff, region: tuple[float, float]) -> str:
    """The measured points in words. Empty until the baseline and all points are measured."""
    baseline = cliff.baseline
    if baseline is None or not cliff.complete:
        return ""
    if not (baseline.leaks and cliff.worked):
        return SAYS_NOTHING
    last = cliff.last_success
    first = cliff.first_hidden
    what = verdict_texts.ALONE[baseline.verdict or COMES_BACK].format(it="the picture")
    opening = f"Without noise {what}: {attack_texts.decibel(baseline.psnr)}."
    if first is None:
        return f"{opening} {ALWAYS}"
    still = f" {_still(last)}" if last else ""
    held = f"From {first.ratio:.2g} on no attack brings anything of it back"
    return f"{opening}{still} {held}: {WHEN[cliff.position(region)]}."


def _still(last: CliffPoint) -> str:
    """The point with the most noise at which something comes back."""
    noisy = f", {verdict_texts.READABLE}: the noise is louder than the signal" if last.readable_though_noisy else ""
    return f"At noise / signal {last.ratio:.2g} something of it still comes back{noisy}."


def point(at: CliffPoint, epsilon: str) -> str:
    """The label of a point at the pointer."""
    noise = NO_NOISE if at.noise is None else f"noise {at.noise:.3g}, noise / signal {at.ratio:.2g}"
    state = verdict_texts.REMARKS.get(at.state, at.state)
    reason = f": {at.reason}" if at.reason else ""
    part = "" if at.done == at.of else f"<br>so far {at.done} of {attack_texts.count(at.of)}"
    first = f"{word(at)}, {attack_texts.decibel(at.psnr)} by {at.attack}"
    return f"{first}<br>{noise}<br>{state}{reason}{part}<br>{epsilon}"


def word(at: CliffPoint) -> str:
    """The verdict on a point."""
    return verdict_texts.with_noise(at.verdict, at.readable_though_noisy) if at.verdict else verdict_texts.NO_GUESS


def axis(answer: Epsilon | None, view: str) -> str:
    """The title of the axis on top: the terms of its ε."""
    if answer is None:
        return f"no ε {privacy.SEEN_BY[view]}"
    return f"ε of the whole run, {terms(answer)}"


def terms(answer: Epsilon) -> str:
    """The unit, the view and δ of an ε."""
    per = "client" if answer.unit == "user" else "picture"
    return f"per {per}, {privacy.SEEN_BY[answer.view]}, δ = {numbers.tiny(answer.delta)}"


def epsilon(answer: Epsilon | None) -> str:
    """ε with its view, unit and δ."""
    if answer is None or answer.value is None:
        return "Nothing is promised here: there is no finite ε."
    return f"{attack_texts.epsilon(answer.value, True)} ({terms(answer)})"


def bare(value: float | None) -> str:
    """ε as a tick label. The title of the axis has its terms."""
    return attack_texts.epsilon(value, True).removeprefix("ε ")


def cliff_alt(cliff: Cliff, region: tuple[float, float], view: str) -> str:
    """The chart in words."""
    low, high = region
    lead = (
        f"Best PSNR by noise over signal, with ε {privacy.SEEN_BY[view]} on top. "
        f"The picture is expected to disappear from {low:.2g} to {high:.2g}."
    )
    baseline = f" Without noise {attack_texts.decibel(cliff.baseline.psnr)}." if cliff.baseline else ""
    points = []
    for at in cliff.points:
        points.append(f"at {at.ratio:.2g} {attack_texts.decibel(at.psnr)}, {word(at)}")
    measured = f" Measured: {'; '.join(points)}." if points else " Nothing is measured yet."
    grey = f" {attack_texts.GREY.capitalize()} reaches {attack_texts.decibel(cliff.trivial)}." if cliff.trivial else ""
    return f"{lead}{baseline}{measured}{grey}"


# --- the ladder in words


def rung(view: str, state: str, psnr: float | None, column: str) -> str:
    """The text alternative of one observer's guess."""
    near = "" if psnr is None else f", {attack_texts.decibel(psnr)}"
    return f"What {ADVERSARIES[view][0].lower()}{ADVERSARIES[view][1:]} got back with {column}: {state}{near}"
