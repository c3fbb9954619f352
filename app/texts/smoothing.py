"""The texts of the two panels about a smoothing: semantic smoothness and spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.results.smoothing import Smoothness, Spectrum

WHEN = "Smoothing after round"
OPENING = "The smoothing after round {round}"
SAME, AS_BEFORE = (
    1e-5,
    0.005,
)  # fractions of the distance before: below SAME none is left, within AS_BEFORE it did not change

# --- semantic smoothness -----------------------------------------------------------------------------------

SMOOTHNESS = "Semantic smoothness: do the clients see the classes alike?"
CLASS = "Class of the bars"
FAR = "how far a client's idea of a class<br>is from the ideas of the others"
PART = "client, on a part of the test data"
LOW = "much lower than others"


def bars(info: Smoothness) -> str:
    """The heading of the bars."""
    return f"accuracy on {info.names[info.label]} by client, %"


def ends(ticks: Sequence[float]) -> list[str]:
    """The labels of the colour scale, with a word at both ends."""
    low, *between, high = (f"{tick:.2g}" for tick in ticks)
    return [f"{low} alike", *between, f"{high} apart"]


def smoothness_sentence(info: Smoothness) -> str:
    """How the smoothing changed the clients' last layers and their accuracy on the chosen class."""
    opening = OPENING.format(round=info.selected.round)
    count = len(info.selected.clients)
    article = "the" if info.cohort <= count else "the first"
    layers = f"the last layers of {article} {count} clients"
    if info.erased:
        return f"{opening} erased {layers}: they are alike, and give the same answer to everything."
    before, after = info.apart
    share = after / before if before else 1.0
    if share < SAME:
        return f"{opening} made {layers} one and the same. {_accuracy_change(info)}"
    if abs(share - 1) < AS_BEFORE:
        return f"{opening} left {layers} as far apart as they were. {_accuracy_change(info)}"
    change = f"{100 * abs(1 - share):.0f} %" if share < 10 else f"{share:.0f} times"
    if share < 1:
        return f"{opening} brought {layers} {change} nearer together. {_accuracy_change(info)}"
    return f"{opening} drove {layers} {change} further apart. {_accuracy_change(info)}"


def _accuracy_change(info: Smoothness) -> str:
    name = info.names[info.label]
    pairs = info.known
    if not pairs:
        return f"The test data hold no “{name}”."
    rose = sum(after > before for before, after in pairs)
    fell = sum(after < before for before, after in pairs)
    change = f"Accuracy on “{name}” rose for {_count(rose)} of {len(pairs)} and fell for {_count(fell)}"
    low_before, low_after = map(len, info.low)
    if low_before or low_after:
        return f"{change}. Much lower than the others: {_count(low_before)} before, {_count(low_after)} after."
    return f"{change}."


def smoothness_alt(info: Smoothness) -> str:
    """The smoothness chart in words."""
    clients = []
    for client, before, after in zip(info.selected.clients, *info.scores, strict=True):
        clients.append(f"client {client} {_points(before)}, then {_points(after)}")
    name = info.names[info.label]
    accuracy = f"Accuracy on {name}: {'; '.join(clients)}"
    return f"Classes by clients, before and after smoothing. {smoothness_sentence(info)} {accuracy}"


def _points(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.0f} %"


def _count(number: int) -> str:
    return str(number or "none")


# --- spectrum ----------------------------------------------------------------------------------------------

SPECTRUM = "Spectrum: what the smoothing removed"
WEIGHT = "Weights of"
FREQUENCY = "frequency: ω0 is what all clients share"
ORDERS = "is the mean over several orders of the clients, and each order has a spectrum of its own."
VALUE = "singular value"
SUNK = "singular value (at the bottom: next to 0)"
RANK, FREQUENCIES = "rank of the singular value", "frequency"


def spectrum_sentence(info: Spectrum) -> str:
    """The singular values that the threshold removed, at frequency 0 and at the others."""
    if info.one_of_several:
        return _in_one_order(info)
    first, *rest = info.removed
    ranks = info.rank_count
    opening = OPENING.format(round=info.selected.round)
    lowered = f"lowered by {info.selected.threshold:.3g}."
    if not any(map(any, info.values)):
        return f"{opening} met nothing: {info.weight} was empty before."
    if all(count == ranks for count in info.removed):
        return f"{opening} removed everything: nothing of {info.weight} is left."
    if not first and not any(rest):
        return f"{opening} removed nothing of {info.weight}. Every singular value was {lowered}"
    left = f"What is left was {lowered}"
    if ranks == 1:
        shared = f"{'all' if first else 'nothing'} of what all clients share (ω0)"
        apart = f"{sum(rest)} of the {len(rest)} frequencies that set them apart"
        return f"{opening} removed {shared} in {info.weight}, and {apart}. {left}"
    which = f"all {ranks} singular values" if first == ranks else f"{_count(first)} of {ranks} singular values"
    whose = "of what all clients share (ω0)" if rest else f"of the clients' mean {info.weight}"
    shared = f"{opening} removed {_about(info, first)}{which} {whose}"
    if not rest:
        return f"{shared}. {left}"
    if all(count == ranks for count in rest):
        return f"{shared}, and all of what sets them apart: each got the same {info.weight}. {left}"
    each = f"{_about(info, *rest)}{_range(rest)} of {ranks} of each frequency that sets them apart"
    return f"{shared}, and {each}. {left}"


def _in_one_order(info: Spectrum) -> str:
    """For a mean over several orders: what fell below the threshold in the recorded order.

    The sentence does not say what is left: that depends on the other orders, which are not recorded.
    """
    first, *rest = info.removed
    ranks = info.rank_count
    opening = f"{OPENING.format(round=info.selected.round)} {ORDERS}"
    if ranks == 1:
        below = f"{first + sum(rest)} of {len(info.values)} frequencies of {info.weight}"
    else:
        others = f", and {_about(info, *rest)}{_range(rest)} of {ranks} of each other frequency" if rest else ""
        below = f"{_about(info, first)}{_count(first)} of {ranks} singular values of {info.weight} at ω0{others}"
    return f"{opening} In the one shown, {below} lay below the threshold of {info.selected.threshold:.3g}."


def threshold_note(info: Spectrum, on_chart: bool) -> str:
    """The note on the chart: the threshold and the count below it. `on_chart`: the chart shows the threshold."""
    far = ""
    if not on_chart:
        far = ", far below" if info.selected.threshold < info.span[0] else ", far above"
    below = "of one order of several, below it lie" if info.one_of_several else "what lies below is removed,"
    return f"threshold {info.selected.threshold:.3g}{far}: {below}<br>{_counted(info)}"


def _counted(info: Spectrum) -> str:
    first, *rest = info.removed
    if info.rank_count == 1:
        return f"{first + sum(rest)} of {len(info.values)} frequencies"
    others = f", {_about(info, *rest)}{_range(rest)} at the others" if rest else ""
    return f"{_about(info, first)}{first} of {info.rank_count} at ω0{others}"


def spectrum_alt(info: Spectrum) -> str:
    """The spectrum chart in words."""
    who = "the clients of the round" if info.selected.clients else "the mean of the clients"
    if info.one_of_several:
        who += ", in one of several orders"
    largest = ", ".join(f"ω{frequency} {values[0]:.3g}" for frequency, values in enumerate(info.values))
    return (
        f"Spectrum of {info.weight} over {who}. {spectrum_sentence(info)} "
        f"Threshold {info.selected.threshold:.3g}; largest singular value of each frequency: {largest}"
    )


def _about(info: Spectrum, *counts: int) -> str:
    """`about`, if not every rank is recorded: then only none and all are exact counts."""
    return "" if info.exact or {*counts} <= {0, info.rank_count} else "about "


def _range(counts: Sequence[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
