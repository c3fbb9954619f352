"""The smoothings of a run: spectra, distances between clients, and accuracy by class before and after."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.events import ByClass, Event, Round, Smoothed, Started

REACH = 2e-6  # a value below this share of the largest is rounding
FAR = 1e3  # a threshold this many times beyond all values is left off the chart
ROOM = 0.2  # of the height of the chart, left free above and below all values
LOW = 2 / 3  # a client is much lower than the others below this share of the median
POINTS = 0.1  # and at least this far below the median


@dataclass(frozen=True)
class Spectrum:
    """The spectra of all smoothings of a run, with one smoothing and one weight selected."""

    smoothings: tuple[Smoothed, ...]
    place: int
    weight: str
    averaged: bool = False  # over several orders of the clients; the spectra are those of one order

    @property
    def selected(self) -> Smoothed:
        return self.smoothings[self.place]

    @property
    def one_of_several(self) -> bool:
        """Whether these are the spectra of one order of several. The sum of the models alone has no order."""
        return self.averaged and bool(self.selected.clients)

    @property
    def values(self) -> tuple[tuple[float, ...], ...]:
        """Singular values by frequency, the slowest first."""
        return self.selected.spectra[self.weight]

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.selected.ranks[self.weight]

    @property
    def rank_count(self) -> int:
        """The number of singular values of each frequency."""
        return self.ranks[-1]

    @property
    def exact(self) -> bool:
        """Whether the event has all singular values, and not only some of the ranks."""
        return len(self.ranks) == self.rank_count

    @property
    def removed(self) -> tuple[int, ...]:
        """The number of singular values of each frequency below the threshold."""
        return tuple(
            self.rank_count - _count_above(values, self.ranks, self.selected.threshold) for values in self.values
        )

    @property
    def span(self) -> tuple[float, float]:
        """The range of the chart's axis. The axis is logarithmic, so it leaves out zero and values from rounding."""
        thresholds = [event.threshold for event in self.smoothings]
        shown: list[float] = []
        for event in self.smoothings:
            for values in event.spectra[self.weight]:
                shown.extend(values)
        largest = max(shown) or max(thresholds)
        least = min((value for value in shown if value > largest * REACH), default=largest)
        low = min([least, *(threshold for threshold in thresholds if threshold * FAR >= least)])
        high = max([largest, *(threshold for threshold in thresholds if threshold <= largest * FAR)])
        room = max(2.0, (high / low) ** ROOM)
        return low / room, high * room


def _count_above(values: Sequence[float], ranks: Sequence[int], threshold: float) -> int:
    """The number of singular values above the threshold. Between two recorded ranks, it is interpolated linearly."""
    recorded = sum(value > threshold for value in values)
    if recorded == 0:
        return 0
    if recorded == len(values):
        return ranks[-1]
    low, high = ranks[recorded - 1], ranks[recorded]
    if high - low <= 1:
        return low
    above, below = values[recorded - 1], values[recorded]
    return low + math.floor((high - low) * (above - threshold) / (above - below))


def collect_spectrum(events: Sequence[Event]) -> Spectrum | None:
    """The spectra of a run's smoothings, with the last smoothing and its last matrix selected."""
    by_round = {event.round: event for event in events if isinstance(event, Smoothed) and event.spectra}
    if not by_round:
        return None
    smoothings = tuple(by_round.values())
    last = smoothings[-1]
    comparable = tuple(event for event in smoothings if event.spectra.keys() == last.spectra.keys())
    matrices = [name for name, ranks in last.ranks.items() if ranks[-1] > 1]  # a bias has one value per frequency
    weight = (matrices or list(last.spectra))[-1]
    return Spectrum(comparable, len(comparable) - 1, weight, averaged(events))


def averaged(events: Sequence[Event]) -> bool:
    """Whether the run averages over several orders of the clients."""
    spec = next((event.spec for event in events if isinstance(event, Started)), {})
    method = spec.get("method")
    return isinstance(method, Mapping) and method.get("client-order") == "averaged"


@dataclass(frozen=True)
class Smoothness:
    """The smoothings of a run with a model for each client, with one smoothing and one class selected."""

    smoothings: tuple[Smoothed, ...]
    cohorts: tuple[int, ...]  # clients of each smoothing; of a large one, the event has only the first clients
    names: tuple[str, ...]  # of the classes
    place: int
    label: int

    @property
    def selected(self) -> Smoothed:
        return self.smoothings[self.place]

    @property
    def scores(self) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
        """Accuracy of each client on the class, before and after."""
        before, after = self.selected.accuracy
        return before[self.label], after[self.label]

    @property
    def cohort(self) -> int:
        return self.cohorts[self.place]

    @property
    def known(self) -> list[tuple[float, float]]:
        """Accuracy before and after, of the clients with a measured accuracy."""
        pairs = zip(*self.scores, strict=True)
        return [(before, after) for before, after in pairs if before is not None and after is not None]

    @property
    def erased(self) -> bool:
        """Whether the smoothing erased the last layer: no singular value is above the threshold."""
        spectra = self.selected.spectra
        last = _layer(list(spectra)[-1]) if spectra else ""
        largest: list[float] = []
        for name, frequencies in spectra.items():
            if _layer(name) == last:
                largest.extend(values[0] for values in frequencies)
        return not self.apart[1] and 0 < max(largest, default=0.0) <= self.selected.threshold

    @property
    def low(self) -> tuple[frozenset[int], frozenset[int]]:
        """The places of the clients that are much lower than the others, before and after."""
        before, after = self.scores
        return _low(before), _low(after)

    @property
    def apart(self) -> tuple[float, float]:
        """The distance of the clients' last layers from each other, before and after."""
        before, after = self.selected.rough
        return _distance(before), _distance(after)


def _layer(weight: str) -> str:
    """The layer of a weight: `fc2` for `fc2.bias`."""
    return weight.rpartition(".")[0]


def _distance(rows: ByClass) -> float:
    return math.sqrt(statistics.fmean([*known_values(rows)] or [0.0]))


def known_values(rows: ByClass) -> Iterator[float]:
    """Every value of a table that is not None."""
    return (value for row in rows for value in row if value is not None)


def _low(scores: Sequence[float | None]) -> frozenset[int]:
    values = [value for value in scores if value is not None]
    if len(values) < 3:
        return frozenset()
    median = statistics.median(values)
    limit = min(LOW * median, median - POINTS)
    return frozenset(place for place, value in enumerate(scores) if value is not None and value < limit)


def collect_smoothness(events: Sequence[Event]) -> Smoothness | None:
    """The smoothings of a run, with the last one and the class that changed most selected."""
    by_round = {event.round: event for event in events if isinstance(event, Smoothed) and _compares_clients(event)}
    if not by_round:
        return None
    smoothings = tuple(by_round.values())
    classes = len(smoothings[-1].rough[0])
    comparable = tuple(event for event in smoothings if len(event.rough[0]) == classes)
    cohorts = {event.round: event.cohort for event in events if isinstance(event, Round)}
    changes = [_change(comparable, label) for label in range(classes)]
    return Smoothness(
        smoothings=comparable,
        cohorts=tuple(cohorts.get(event.round, 0) for event in comparable),
        names=_class_names(events, classes),
        place=len(comparable) - 1,
        label=changes.index(max(changes)),
    )


def _compares_clients(event: Smoothed) -> bool:
    return len(event.clients) > 1 and bool(event.rough[0]) and bool(event.accuracy[0])


def _class_names(events: Sequence[Event], classes: int) -> tuple[str, ...]:
    started = next((event for event in events if isinstance(event, Started)), None)
    names = tuple(started.facts.get("classes", ())) if started else ()
    if len(names) == classes:
        return names
    return tuple(f"class {label}" for label in range(classes))


def _change(smoothings: Sequence[Smoothed], label: int) -> float:
    """The mean absolute change in the clients' accuracy on a class."""
    changes: list[float] = []
    for event in smoothings:
        befores, afters = event.accuracy
        for before, after in zip(befores[label], afters[label], strict=True):
            if before is not None and after is not None:
                changes.append(abs(after - before))
    return statistics.fmean(changes) if changes else 0.0
