"""Everything a run can say. Small JSON goes in the record; tensors leave beside it, as a payload that `encode` strips.

Events are told in this order: Started, then for each round Round, Measured, Spent, Kept, and one ending at last:
Finished, Failed or Cancelled. Smoothed and Warned may come anywhere. An attack tells Started, Step, Seen, Pictured
and Judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import Damaged

if TYPE_CHECKING:
    import numpy

BEFORE_SMOOTHING = "before smoothing"  # whose accuracy: that of the mean of the models as they came

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


ByClass = tuple[tuple[float | None, ...], ...]  # (classes, clients)


@dataclass(frozen=True)
class Smoothed(Event):
    """The server smoothed the models of a round: what the threshold met, and what that did to each client's model.

    Of a large round the first clients alone are told of, by their slices; the spectra are those of all of them.
    """

    round: int
    threshold: float  # of the singular values of the unnormalised Fourier slices
    clients: tuple[int, ...]  # in the order of their slices; none where the server had only their sum
    spectra: Mapping[str, tuple[tuple[float, ...], ...]]  # by weight and frequency: singular values before, thinned
    ranks: Mapping[str, tuple[int, ...]]  # by weight: at which ranks those stand, from 1
    # of the last layer, before and after: mean squared distance of a client's row, bias included, from the others'
    rough: tuple[ByClass, ByClass]
    accuracy: tuple[ByClass, ByClass]  # of each client's model on each class, before and after; None: no such picture


@dataclass(frozen=True)
class Step(Event):
    """What an attack does before its first guess, and how much of that is done."""

    what: str
    fraction: float = 0.0


@dataclass(frozen=True)
class Seen(Event):
    """What one adversary had in hand; and, beside it, the truth, which no attack is given."""

    view: str
    round: int
    client: int | None
    facts: Mapping[str, Any]  # pictures, labels, steps, uploads, kind, bound, std, noise-to-signal
    originals: tuple[str, ...]  # PNG in base64: pictures are small enough for an event
    trivial: Mapping[str, tuple[float, ...]]  # what the mean colour of each picture reaches, by metric


@dataclass(frozen=True)
class Pictured(Event):
    """What one restart of an attack believes after some iterations."""

    attack: str
    iteration: int
    of: int
    restart: int
    loss: float | None
    pictures: tuple[str, ...]  # PNG in base64
    places: tuple[int, ...]  # which of the originals each is nearest to
    psnr: tuple[float, ...]


@dataclass(frozen=True)
class Judged(Event):
    """The attack is over: which restart it chose by its own objective, and how near that came."""

    attack: str
    state: str  # `converged`, `not converged` or `diverged`
    reason: str
    restart: int
    places: tuple[int, ...]  # the originals that a guess belongs to: what follows stands in their order
    labels: tuple[int, ...]
    numbers: Mapping[str, tuple[float, ...]]  # by metric, a number a picture
    trivial: Mapping[str, tuple[float, ...]]  # the same for the mean colour of each picture
    curves: Mapping[str, tuple[float, ...]]  # by metric, the mean at each moment that was shown
    restarts: tuple[Mapping[str, Any], ...]  # of each: loss, left, state, psnr
    floor: float  # the share of the upload that is noise


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


# The names in JSON. They never change, whatever the classes are called.
KINDS: Mapping[str, type[Event]] = {
    "started": Started,
    "round": Round,
    "measured": Measured,
    "spent": Spent,
    "smoothed": Smoothed,
    "step": Step,
    "seen": Seen,
    "pictured": Pictured,
    "judged": Judged,
    "warned": Warned,
    "kept": Kept,
    "finished": Finished,
    "failed": Failed,
    "cancelled": Cancelled,
}
NAMES = {kind: name for name, kind in KINDS.items()}

ROWS = (Spent, Smoothed, Seen, Pictured, Judged)  # their lists are tuples


def encode(event: Event) -> dict[str, Any]:
    """An event as JSON, without its payload; JSON never holds NaN or Infinity."""
    body = {one.name: getattr(event, one.name) for one in fields(event) if one.name != "payload"}
    return {"event": NAMES[type(event)], **{key: finite(value) for key, value in body.items()}}


def decode(body: Mapping[str, Any]) -> Event:
    """The event that `encode` wrote; a kind or field of a newer version is refused as damage, never guessed."""
    kind = KINDS.get(str(body.get("event")))
    if kind is None:
        raise Damaged(f"event: no kind {body.get('event')!r}", "It may come from a newer LeakLens: update this one")
    values = {key: value for key, value in body.items() if key != "event"}
    try:
        return kind(**{key: tuples(value) for key, value in values.items()} if kind in ROWS else values)
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


def tuples(value: Any) -> Any:
    """The same value with a tuple for every list: JSON knows only one of them."""
    if isinstance(value, Mapping):
        return {key: tuples(item) for key, item in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list) else value
