"""Texts of the budget slider: a position in numbers and words."""

from __future__ import annotations

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.errors import plain_number
from engine.results.estimates import Estimate

TITLE, STRENGTH = "Budget ε", "Strength"  # steps of the method are no ε
LABEL = "{title} of side {side}"
OFF = "off"
STEPS = (OFF, "light", "medium", "strong")
LESS, MORE = "leaks", "strong"
UNREACHABLE = "No noise of this method reaches ε {budget}: {reason}."
COMPUTING = "The other positions are being computed."
NO_EPSILON = "No ε {against}: {reason}. The positions are steps of the method's own strength."
MAKES_NO_PROMISE = "makes no promise"
NO_BUDGET = "{title} adds no protection, so it has no budget. Choose another protection."
INVALID = "Fix the marked fields first. Then the budget is shown here."
UNKNOWN_ACCURACY = "accuracy unknown: no stored run is near"
NOISE = "noise"
NO_NOISE = "no noise"


def tick(epsilon: Epsilon | None) -> str:
    """The label of a position."""
    value = None if epsilon is None else epsilon.value
    return numbers.epsilon(value)


def size(epsilon: Epsilon | None) -> tuple[str, str]:
    """The size of a promise in words with its sign, and its colour. The number is in the terms."""
    if epsilon is None or epsilon.value is None:
        return f"{privacy.NO_PROMISE.sign} {privacy.NOTHING}", privacy.NO_PROMISE.side
    promise = privacy.size_of(epsilon)
    return f"{promise.sign} {promise.word}", promise.side


def terms(epsilon: Epsilon | None, noise: float, step: float | None = None) -> str:
    """ε with its observer and unit, and the noise that it needs. `step` is a server step that goes with the noise."""
    needed = strength(NOISE, noise, step) if noise else NO_NOISE
    if epsilon is None or epsilon.value is None:
        return needed
    # A bound of Rényi may be larger than the ε that the finished run reports.
    at_most = "at most " if epsilon.accountant == "rdp" else ""
    value = privacy.rounded_text(epsilon)
    return f"ε {at_most}{value} {privacy.AGAINST[epsilon.view]}, {privacy.PER[epsilon.unit]} ({needed})"


def strength(unit: str, value: float, step: float | None = None) -> str:
    """A strength as the method counts it, with all digits of the run."""
    with_step = "" if step is None else f", server step {plain_number(step)}"
    return f"{unit} {plain_number(value)}{with_step}"


def accuracy(estimate: Estimate | None) -> str:
    """A measured accuracy, or an estimated one with its band and its number of runs."""
    if estimate is None:
        return UNKNOWN_ACCURACY
    value = f"{100 * estimate.value:.0f} %"
    if estimate.exact:
        return f"{value} accuracy, measured"
    runs = f"{estimate.neighbours} stored run{'' if estimate.neighbours == 1 else 's'}"
    band = f"{100 * estimate.low:.0f} to {100 * estimate.high:.0f}"
    return f"about {value} accuracy ({band}), estimated from {runs}"


def picture(verdict: str, noise: float, here: bool) -> str:
    """What a stored attack brought back at this noise, or at the nearest smaller one."""
    at = "at this noise" if here else f"at noise {plain_number(noise)}"
    return f"picture {at}: {verdict}" if noise else f"picture without noise: {verdict}"
