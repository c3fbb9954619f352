"""What the smoothings of a run met and did: spectra, distances between clients, accuracy by class."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.events import ByClass, Event, Round, Smoothed, Started

REACH = 2e-6  # a value below this share of the largest is rounding
FAR = 1e3  # a threshold this many times beyond all values is not on the chart
ROOM = 0.2  # of the height, above and below everything
LOW = 2 / 3  # a client is much lower where it has less than this share of the median
POINTS = 0.1  # and lies at least so far below the median


@dataclass(frozen=True)
class Spectrum:
    """Every smoothing of a run; one of them, and one weight, is looked at."""

    told: tuple[Smoothed, ...]
    at: int
    weight: str
    averaged: bool = False  # over several orders of the clients, of which one is told of

    @property
    def now(self) -> Smoothed:
        return self.told[self.at]

    @property
    def one_of_several(self) -> bool:
        """Whether this is what one order of the clients met; where there is only their sum, there is no order."""
        return self.averaged and bool(self.now.clients)

    @property
    def values(self) -> tuple[tuple[float, ...], ...]:
        """By frequency, the slowest first."""
        return self.now.spectra[self.weight]

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.now.ranks[self.weight]

    @property
    def many(self) -> int:
        """Singular values of each frequency."""
        return self.ranks[-1]

    @property
    def exact(self) -> bool:
        """Whether none was left out."""
        return len(self.ranks) == self.many

    @property
    def removed(self) -> tuple[int, ...]:
        """So many of each frequency lie below the threshold."""
        return tuple(self.many - _above(values, self.ranks, self.now.threshold) for values in self.values)

    @property
    def span(self) -> tuple[float, float]:
        """From where to where the chart reaches: an axis of powers has no zero, and rounding is not worth a look."""
        shown = [value for one in self.told for values in one.spectra[self.weight] for value in values]
        thresholds = [one.threshold for one in self.told]
        largest = max(shown) or max(thresholds)
        least = min((value for value in shown if value > largest * REACH), default=largest)
        low = min([least, *(one for one in thresholds if one * FAR >= least)])
        high = max([largest, *(one for one in thresholds if one <= largest * FAR)])
        room = max(2.0, (high / low) ** ROOM)
        return low / room, high * room


def _above(values: Sequence[float], ranks: Sequence[int], threshold: float) -> int:
    """How many reach over the threshold; between two ranks that are known, as a straight line would have it."""
    over = sum(value > threshold for value in values)
    if over in (0, len(values)):
        return ranks[-1] if over else 0
    low, high, before, behind = ranks[over - 1], ranks[over], values[over - 1], values[over]
    return low + math.floor((high - low) * (before - threshold) / (before - behind)) if high - low > 1 else low


def collect_spectrum(events: Sequence[Event]) -> Spectrum | None:
    told = {event.round: event for event in events if isinstance(event, Smoothed) and event.spectra}
    if not told:
        return None
    last = tuple(told.values())[-1]
    same = tuple(one for one in told.values() if one.spectra.keys() == last.spectra.keys())
    matrices = [name for name, ranks in last.ranks.items() if ranks[-1] > 1]  # a bias has one value a frequency
    return Spectrum(same, len(same) - 1, (matrices or list(last.spectra))[-1], averaged(events))


def averaged(events: Sequence[Event]) -> bool:
    """Whether the question asks for the mean over several orders."""
    spec = next((event.spec for event in events if isinstance(event, Started)), {})
    method = spec.get("method")
    return isinstance(method, Mapping) and method.get("client-order") == "averaged"


@dataclass(frozen=True)
class Smoothness:
    """Every smoothing of a run that knew its clients; one of them, and one class, is looked at."""

    told: tuple[Smoothed, ...]
    cohorts: tuple[int, ...]  # clients of each smoothing: of a large one the first alone are told of
    names: tuple[str, ...]  # of the classes
    at: int
    label: int

    @property
    def now(self) -> Smoothed:
        return self.told[self.at]

    @property
    def scores(self) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
        """Accuracy of each client on the class, before and after."""
        before, after = self.now.accuracy
        return before[self.label], after[self.label]

    @property
    def cohort(self) -> int:
        return self.cohorts[self.at]

    @property
    def known(self) -> list[tuple[float, float]]:
        """The same of those clients whose accuracy is known."""
        pairs = zip(*self.scores, strict=True)
        return [(before, after) for before, after in pairs if before is not None and after is not None]

    @property
    def erased(self) -> bool:
        """Whether nothing is left of the last layer, the last that the server has told of."""
        spectra = self.now.spectra
        last = list(spectra)[-1].rpartition(".")[0] if spectra else ""
        ends = [values[0] for name in spectra if name.rpartition(".")[0] == last for values in spectra[name]]
        return not self.apart[1] and 0 < max(ends, default=0.0) <= self.now.threshold

    @property
    def low(self) -> tuple[frozenset[int], frozenset[int]]:
        """Places of the clients that are much lower than the others, before and after."""
        before, after = self.scores
        return _low(before), _low(after)

    @property
    def apart(self) -> tuple[float, float]:
        """How far the clients' last layers are from each other, as a distance."""
        before, after = (math.sqrt(statistics.fmean([*_known(rows)] or [0.0])) for rows in self.now.rough)
        return before, after


def _known(rows: ByClass) -> Iterator[float]:
    return (value for row in rows for value in row if value is not None)


def _low(scores: Sequence[float | None]) -> frozenset[int]:
    known = [value for value in scores if value is not None]
    if len(known) < 3:
        return frozenset()
    limit = min(LOW * statistics.median(known), statistics.median(known) - POINTS)
    return frozenset(at for at, value in enumerate(scores) if value is not None and value < limit)


def collect_smoothness(events: Sequence[Event]) -> Smoothness | None:
    told = {
        event.round: event
        for event in events
        if isinstance(event, Smoothed) and len(event.clients) > 1 and event.rough[0] and event.accuracy[0]
    }
    if not told:
        return None
    many = len(tuple(told.values())[-1].rough[0])
    begun = next((event for event in events if isinstance(event, Started)), None)
    given = list(begun.facts.get("classes", ()) if begun else ())
    names = tuple(given if len(given) == many else (f"class {label}" for label in range(many)))
    every = tuple(one for one in told.values() if len(one.rough[0]) == many)
    met = {event.round: event.cohort for event in events if isinstance(event, Round)}
    cohorts = tuple(met.get(one.round, 0) for one in every)
    return Smoothness(every, cohorts, names, len(every) - 1, max(range(many), key=lambda label: _moved(every, label)))


def _moved(told: Sequence[Smoothed], label: int) -> float:
    """How much the smoothings changed what clients know of a class, for better or worse."""
    changes = [
        abs(after - before)
        for one in told
        for before, after in zip(one.accuracy[0][label], one.accuracy[1][label], strict=True)
        if before is not None and after is not None
    ]
    return statistics.fmean(changes) if changes else 0.0
