"""Smoothing events with small numbers, so that a test can state the expected charts and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import ByClass, Event, Round, Smoothed, Started

NAMES = ["shirt", "bag"]
CLIENTS = (3, 7, 40)
ROUGH: tuple[ByClass, ByClass] = (((4.0, 8.0, 4.0), (4.0, 4.0, 0.0)), ((1.0, 2.0, 1.0), (1.0, 1.0, 0.0)))
ACCURACY: tuple[ByClass, ByClass] = (((0.5, 0.5, 0.5), (0.75, 0.25, 0.75)), ((0.5, 0.5, 0.5), (0.75, 0.75, 0.5)))
SPECTRA = {
    "hidden.weight": ((8.0, 4.0, 2.0, 0.5), (2.0, 0.5, 0.25, 0.125)),
    "head.weight": ((4.0, 2.0), (0.5, 0.25)),
    "head.bias": ((2.0,), (0.5,)),
}


def smoothed(
    round: int = 10,
    threshold: float = 1.0,
    clients: Sequence[int] = CLIENTS,
    rough: tuple[ByClass, ByClass] = ROUGH,
    accuracy: tuple[ByClass, ByClass] = ACCURACY,
    spectra: dict[str, tuple[tuple[float, ...], ...]] | None = None,
    ranks: dict[str, tuple[int, ...]] | None = None,
) -> Smoothed:
    values = SPECTRA if spectra is None else spectra
    all_ranks = {name: tuple(range(1, len(frequencies[0]) + 1)) for name, frequencies in values.items()}
    all_ranks |= ranks or {}
    return Smoothed(round, threshold, tuple(clients), values, all_ranks, rough, accuracy)


def run_events(*smoothings: Smoothed, names: Sequence[str] = NAMES, cohort: int = 3) -> tuple[Event, ...]:
    """The events of a run with these smoothings."""
    events: list[Event] = [Started("r", {}, {"classes": list(names)})]
    for smoothing in smoothings:
        events += [Round(smoothing.round, 30, cohort), smoothing]
    return tuple(events)


def by_class(classes: int, clients: int, first: float) -> ByClass:
    """A table whose values rise by 0.001 from cell to cell."""
    rows = []
    for label in range(classes):
        rows.append(tuple(first + 0.001 * (label * clients + client) for client in range(clients)))
    return tuple(rows)
