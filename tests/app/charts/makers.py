"""Smoothings as a server tells of them: small numbers, chosen so that a test can say what follows from them."""

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
    places = {name: tuple(range(1, len(found[0]) + 1)) for name, found in values.items()}
    return Smoothed(round, threshold, tuple(clients), values, {**places, **(ranks or {})}, rough, accuracy)


def told(*smoothings: Smoothed, names: Sequence[str] = NAMES, cohort: int = 3) -> tuple[Event, ...]:
    """A run of these smoothings."""
    rounds = [Round(one.round, 30, cohort) for one in smoothings]
    pairs = [event for pair in zip(rounds, smoothings, strict=True) for event in pair]
    return (Started("r", {}, {"classes": list(names)}), *pairs)


def by_class(classes: int, clients: int, first: float) -> ByClass:
    """A table that rises by a little from cell to cell."""
    return tuple(
        tuple(first + 0.001 * (label * clients + place) for place in range(clients)) for label in range(classes)
    )
