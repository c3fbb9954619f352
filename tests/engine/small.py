"""Small questions that run in a fraction of a second, and the parts of them that tests look at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.events import Event, Kept, Measured, Round, encode
from engine.specs.run import RunSpec

TINY: dict[str, Any] = {"rounds": 2, "clients": 40, "sampled": 6, "epochs": 1, "batch": 100, "seed": 3}


def tiny(**changes: Any) -> RunSpec:
    return RunSpec(**{**TINY, **changes})


def told(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What must be the same in every replay: all but seconds, progress and checkpoints, which follow the clock."""
    kept = []
    for event in events:
        if isinstance(event, Kept) and event.kind == "checkpoint":
            continue
        if isinstance(event, Round) and event.fraction:
            continue
        body = {key: value for key, value in encode(event).items() if key != "seconds"}
        if isinstance(event, Kept) and event.payload is not None:
            body["payload"] = {name: array.tobytes() for name, array in event.payload.items()}
        kept.append(body)
    return kept


def accuracies(events: Iterable[Event], who: str = "global") -> list[float | None]:
    return [one.value for one in events if isinstance(one, Measured) and one.name == "accuracy" and one.who == who]
