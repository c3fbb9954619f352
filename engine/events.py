"""Everything a run can say. Small JSON goes in the record; tensors leave beside it, as a payload that `encode` strips.

Events are told in this order: Started, then for each round Round, Measured, Spent, Kept, and one ending at last:
Finished, Failed or Cancelled. Warned may come anywhere, Pictured comes from attacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import Damaged

if TYPE_CHECKING:
    import numpy

Payload = Mapping[str, "numpy.ndarray[Any, Any]"]


@dataclass(frozen=True)
class Event:
    """One thing a run said."""

    ends: ClassVar[bool] = False  # nothing comes after an event that ends


@dataclass(frozen=True)
class Started(Event):
    """The run begins: what was asked, resolved to the numbers that are used."""

    run: str
    spec: Mapping[str, Any]
    facts: Mapping[str, Any]  # parameters, sizes, sampling, noise in force, delta


@dataclass(frozen=True)
class Round(Event):
    """A round begins, or `fraction` of it is done."""

    round: int
    of: int
    cohort: int
    fraction: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured(Event):
    """A number measured after a round; `who` is `global`, `personal`, or a client or class."""

    round: int
    name: str
    value: float | None
    who: str = "global"


@dataclass(frozen=True)
class Spent(Event):
    """The privacy spent so far in one view, with the words that must stand beside it."""

    round: int
    view: str
    epsilon: float | None  # None: no finite number
    unit: str
    adjacency: str
    delta: float
    accountant: str
    sampling: str
    bound: str = ""  # `upper bound` where the true cost may be lower
    reason: str = ""  # why there is no number
    worst: int | None = None  # the client that pays most
    quantiles: tuple[float, ...] = ()  # over clients: least, quarter, median, three quarters, most


@dataclass(frozen=True)
class Pictured(Event):
    """An attack's picture after some iterations."""

    attack: str
    iteration: int
    loss: float | None
    name: str = ""
    payload: Payload | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Warned(Event):
    """Something the asker should know, and what to do about it."""

    reason: str
    remedy: str
    round: int = 0


@dataclass(frozen=True)
class Kept(Event):
    """Arrays put aside under a name: `checkpoint`, `state`, `exposure`, `truth` or `models`."""

    kind: str
    name: str
    round: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    payload: Payload | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Finished(Event):
    """The run did what was asked, or stopped before the budget would break."""

    ends: ClassVar[bool] = True
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Failed(Event):
    """The run could not go on."""

    ends: ClassVar[bool] = True
    reason: str
    remedy: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Cancelled(Event):
    """Somebody stopped the run; asked again, it goes on from its checkpoint."""

    ends: ClassVar[bool] = True
    round: int


KINDS: Mapping[str, type[Event]] = {
    kind.__name__.lower(): kind
    for kind in (Started, Round, Measured, Spent, Pictured, Warned, Kept, Finished, Failed, Cancelled)
}


def encode(event: Event) -> dict[str, Any]:
    """An event as JSON, without its payload; JSON never holds NaN or Infinity."""
    body = {one.name: getattr(event, one.name) for one in fields(event) if one.name != "payload"}
    return {"event": type(event).__name__.lower(), **{key: finite(value) for key, value in body.items()}}


def decode(body: Mapping[str, Any]) -> Event:
    """The event that `encode` wrote; a kind or field of a newer version is refused as damage, never guessed."""
    kind = KINDS.get(str(body.get("event")))
    if kind is None:
        raise Damaged(f"event: no kind {body.get('event')!r}", "It may come from a newer LeakLens: update this one")
    values = {key: value for key, value in body.items() if key != "event"}
    if isinstance(values.get("quantiles"), list):
        values["quantiles"] = tuple(values["quantiles"])
    try:
        return kind(**values)
    except TypeError as error:
        raise Damaged(
            f"event {body.get('event')}: {error}", "It may come from a newer LeakLens: update this one"
        ) from None


def finite(value: Any) -> Any:
    """The same value with None wherever a number is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
