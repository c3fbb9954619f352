"""A run as the page shows it: from the store, else a stored example of the same question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.base import Track
from app.session import services
from app.texts import product
from engine.events import Event
from engine.examples.files import RunExample
from engine.jobs.status import ListedRun

ENDED = ("finished", "failed", "cancelled", "interrupted", "stored")


@dataclass(frozen=True)
class ShownRun:
    """One run on the page: from the store, or a stored example."""

    id: str
    status: str
    spec: Mapping[str, Any]
    events: tuple[Event, ...]
    listed: ListedRun | None = None
    example: RunExample | None = None

    @property
    def method(self) -> str:
        return method_of(self.spec)


def method_of(spec: Mapping[str, Any]) -> str:
    method = spec.get("method", "")
    return str(method.get("name", "") if isinstance(method, Mapping) else method)


def find(run: str) -> ShownRun | None:
    """A run of this store, else the stored example of the same spec; None for an attack, which trains nothing."""
    if found := services.read(run):
        listed, events = found
        if "attack" in listed.spec:
            return None
        return ShownRun(run, listed.status, listed.spec, events, listed)
    if example := services.stored(run):
        return ShownRun(run, "stored", example.spec, example.events, example=example)
    return None


def tracks_of(runs: Sequence[ShownRun], twins: Sequence[ShownRun]) -> list[Track]:
    main = Track("this run", "main", runs[0].method, runs[0].events, runs[0].id)
    seeds = [Track(f"seed {one.spec.get('seed', 0)}", "seed", one.method, one.events, one.id) for one in runs[1:]]
    return [main, *seeds, *(Track(product.TWIN, "twin", one.method, one.events, one.id) for one in twins)]
