"""Every text of the two panels that look into a smoothing: semantic smoothness and spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.results.smoothing import Smoothness, Spectrum

WHEN = "Smoothing after round"
OPENING = "The smoothing after round {round}"
SAME, AS_BEFORE = 1e-5, 0.005  # of the distance before: what counts as none left, and as no change

# --- semantic smoothness -----------------------------------------------------------------------------------

SMOOTHNESS = "Semantic smoothness: do the clients see the classes alike?"
CLASS = "Class of the bars"
FAR = "how far a client's idea of a class<br>is from the ideas of the others"
PART = "client, on a part of the test data"
LOW = "much lower than others"


def bars(info: Smoothness) -> str:
    return f"accuracy on {info.names[info.label]} by client, %"


def ends(ticks: Sequence[float]) -> list[str]:
    """Numbers along the colours, with words at both ends."""
    low, *between, high = (f"{one:.2g}" for one in ticks)
    return [f"{low} alike", *between, f"{high} apart"]


def brought(info: Smoothness) -> str:
    """What the smoothing did to the clients' last layers, and to what they know of the class."""
    opening, many = OPENING.format(round=info.now.round), len(info.now.clients)
    who = f"the last layers of {'the' if info.cohort <= many else 'the first'} {many} clients"
    if info.erased:
        return f"{opening} erased {who}: they are alike, and give the same answer to everything."
    before, after = info.apart
    share = after / before if before else 1.0
    if share < SAME:
        return f"{opening} made {who} one and the same. {_rose(info)}"
    if abs(share - 1) < AS_BEFORE:
        return f"{opening} left {who} as far apart as they were. {_rose(info)}"
    much = f"{100 * abs(1 - share):.0f} %" if share < 10 else f"{share:.0f} times"
    did, how = ("brought", "nearer together") if share < 1 else ("drove", "further apart")
    return f"{opening} {did} {who} {much} {how}. {_rose(info)}"


def _rose(info: Smoothness) -> str:
    name, known = info.names[info.label], info.known
    if not known:
        return f"The test data hold no “{name}”."
    rose, fell = sum(after > before for before, after in known), sum(after < before for before, after in known)
    moved = f"Accuracy on “{name}” rose for {_some(rose)} of {len(known)} and fell for {_some(fell)}"
    before, after = map(len, info.low)
    if before or after:
        return f"{moved}. Much lower than the others: {_some(before)} before, {_some(after)} after."
    return f"{moved}."


def smoothness_alt(info: Smoothness) -> str:
    each = "; ".join(
        f"client {client} {_points(before)}, then {_points(after)}"
        for client, before, after in zip(info.now.clients, *info.scores, strict=True)
    )
    name = info.names[info.label]
    return f"Classes by clients, before and after smoothing. {brought(info)} Accuracy on {name}: {each}"


def _points(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"


def _some(many: int) -> str:
    return str(many or "none")


# --- spectrum ----------------------------------------------------------------------------------------------

SPECTRUM = "Spectrum: what the smoothing removed"
WEIGHT = "Weights of"
FREQUENCY = "frequency: ω0 is what all clients share"
ORDERS = "is the mean over several orders of the clients, and each order has a spectrum of its own."
VALUE = "singular value"
SUNK = "singular value (at the bottom: next to 0)"
RANK, FREQUENCIES = "rank of the singular value", "frequency"


def removed(info: Spectrum) -> str:
    """What fell under the threshold, of what the clients share and of what sets them apart."""
    if info.one_of_several:
        return _in_one_order(info)
    (first, *rest), many = info.removed, info.many
    opening, lowered = OPENING.format(round=info.now.round), f"lowered by {info.now.threshold:.3g}."
    if not any(map(any, info.values)):
        return f"{opening} met nothing: {info.weight} was empty before."
    if first == many and all(one == many for one in rest):
        return f"{opening} removed everything: nothing of {info.weight} is left."
    if not first and not any(rest):
        return f"{opening} removed nothing of {info.weight}. Every singular value was {lowered}"
    if many == 1:
        shared = f"{'all' if first else 'nothing'} of what all clients share (ω0)"
        apart = f"{sum(rest)} of the {len(rest)} frequencies that set them apart"
        return f"{opening} removed {shared} in {info.weight}, and {apart}. What is left was {lowered}"
    which = f"all {many} singular values" if first == many else f"{_some(first)} of {many} singular values"
    whose = "of what all clients share (ω0)" if rest else f"of the clients' mean {info.weight}"
    shared = f"{opening} removed {_about(info, first)}{which} {whose}"
    if not rest:
        return f"{shared}. What is left was {lowered}"
    if all(one == many for one in rest):
        return f"{shared}, and all of what sets them apart: each got the same {info.weight}. What is left was {lowered}"
    each = f"{_about(info, *rest)}{_range(rest)} of {many} of each frequency that sets them apart"
    return f"{shared}, and {each}. What is left was {lowered}"


def _in_one_order(info: Spectrum) -> str:
    """Of the mean over several orders: what fell in the one that is told of, and nothing of what that leaves."""
    (first, *rest), many = info.removed, info.many
    opening = f"{OPENING.format(round=info.now.round)} {ORDERS}"
    if many == 1:
        below = f"{first + sum(rest)} of {len(info.values)} frequencies of {info.weight}"
    else:
        others = f", and {_about(info, *rest)}{_range(rest)} of {many} of each other frequency" if rest else ""
        below = f"{_about(info, first)}{_some(first)} of {many} singular values of {info.weight} at ω0{others}"
    return f"{opening} In the one shown, {below} lay below the threshold of {info.now.threshold:.3g}."


def cut(info: Spectrum, there: bool) -> str:
    """The same as short as a chart needs it, which has the threshold on it or not."""
    far = "" if there else ", far below" if info.now.threshold < info.span[0] else ", far above"
    fate = "of one order of several, below it lie" if info.one_of_several else "what lies below is removed,"
    return f"threshold {info.now.threshold:.3g}{far}: {fate}<br>{_counted(info)}"


def _counted(info: Spectrum) -> str:
    first, *rest = info.removed
    if info.many == 1:
        return f"{first + sum(rest)} of {len(info.values)} frequencies"
    others = f", {_about(info, *rest)}{_range(rest)} at the others" if rest else ""
    return f"{_about(info, first)}{first} of {info.many} at ω0{others}"


def spectrum_alt(info: Spectrum) -> str:
    who = "the clients of the round" if info.now.clients else "the mean of the clients"
    who = f"{who}, in one of several orders" if info.one_of_several else who
    largest = ", ".join(f"ω{frequency} {values[0]:.3g}" for frequency, values in enumerate(info.values))
    return (
        f"Spectrum of {info.weight} over {who}. {removed(info)} "
        f"Threshold {info.now.threshold:.3g}; largest singular value of each frequency: {largest}"
    )


def _about(info: Spectrum, *counts: int) -> str:
    """Where not every rank is told, only none and all are known for sure."""
    return "" if info.exact or {*counts} <= {0, info.many} else "about "


def _range(counts: Sequence[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
