"""A run as a page shows it: from the store, or a stored example of the same spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.session import services
from engine.events import Event
from engine.examples.files import RunExample
from engine.jobs.status import MOVING, ListedRun

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
    behind: ShownRun | None = None  # an unfinished run of the same spec, in whose place the stored example is shown

    @property
    def method(self) -> str:
        return method_of(self.spec)


def method_of(spec: Mapping[str, Any]) -> str:
    method = spec.get("method", "")
    return str(method.get("name", "") if isinstance(method, Mapping) else method)


def find(run: str) -> ShownRun | None:
    """A run of the store, or the stored example of the same spec. None for an attack: it trains nothing.

    An unfinished run does not hide a finished example. While it is under way, those who requested it see it form.
    """
    stored = services.read(run)
    example = services.stored_example(run)
    if stored:
        listed, events = stored
        if "attack" in listed.spec:
            return None
        forming = listed.status in MOVING and services.wanted([run])
        if not example or listed.status == "finished" or forming:
            return ShownRun(run, listed.status, listed.spec, events, listed)
    if example:
        behind = ShownRun(run, stored[0].status, stored[0].spec, stored[1], stored[0]) if stored else None
        return ShownRun(run, "stored", example.spec, example.events, example=example, behind=behind)
    return None
