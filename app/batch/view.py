"""A run as a page shows it: from the store, or a stored example of the same spec."""

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
    """A run of the store, or the stored example of the same spec. None for an attack: it trains nothing."""
    stored = services.read(run)
    if stored:
        listed, events = stored
        if "attack" in listed.spec:
            return None
        return ShownRun(run, listed.status, listed.spec, events, listed)
    example = services.stored_example(run)
    if example:
        return ShownRun(run, "stored", example.spec, example.events, example=example)
    return None


def tracks_of(runs: Sequence[ShownRun], baselines: Sequence[ShownRun]) -> list[Track]:
    """The runs as tracks of a chart: the run itself, its other seeds, and the baselines."""
    tracks = [Track("this run", "main", runs[0].method, runs[0].events, runs[0].id)]
    for run in runs[1:]:
        seed = run.spec.get("seed", 0)
        tracks.append(Track(f"seed {seed}", "seed", run.method, run.events, run.id))
    for baseline in baselines:
        tracks.append(Track(product.NO_PROTECTION, "baseline", baseline.method, baseline.events, baseline.id))
    return tracks
