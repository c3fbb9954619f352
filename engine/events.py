"""The events that a run or an attack yields. Each is a small JSON record.

Arrays travel in a separate payload, which `encode` leaves out of the JSON.

A run yields Started, then for each round Round, Measured, Spent and Kept. It ends with one of Finished, Failed and
Cancelled. Smoothed and Warned may come at any time. An attack yields Started, Step, Seen, Pictured and
Judged, or Scored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from engine.epsilon import Epsilon
from engine.errors import Damaged
from engine.event_shapes import wrong_field

if TYPE_CHECKING:
    import numpy

BEFORE_SMOOTHING = "before smoothing"  # `Measured.who` for the mean of the uploaded models, before the server smooths

Payload = Mapping[str, "numpy.ndarray[Any, Any]"]


@dataclass(frozen=True)
class Event:
    """One record of a run or an attack."""

    ends: ClassVar[bool] = False  # whether this event is the last of its run


@dataclass(frozen=True)
class Started(Event):
    """The run starts: its spec, and the numbers that follow from it."""

    run: str
    spec: Mapping[str, Any]
    facts: Mapping[str, Any]  # parameters, sizes, sampling, noise used, delta


@dataclass(frozen=True)
class Round(Event):
    """A round starts, or `fraction` of it is done."""

    round: int
    of: int
    cohort: int
    fraction: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured(Event):
    """A number measured after a round. `who` is `global`, `personal`, a client or a class."""

    round: int
    name: str
    value: float | None
    who: str = "global"


@dataclass(frozen=True)
class Spent(Event):
    """The ε spent so far in one view, with the assumptions that every display of it must name."""

    round: int
    view: str
    epsilon: float | None  # None: no finite number
    unit: str
    adjacency: str
    delta: float
    accountant: str
    sampling: str
    bound: str = ""  # `upper bound` where the true cost may be lower
    reason: str = ""  # why `epsilon` is None
    worst: int | None = None  # the client with the largest ε
    quantiles: tuple[float, ...] = ()  # over clients: minimum, quartiles and maximum

    @classmethod
    def of(cls, round: int, total: Epsilon) -> Spent:
        """The event of an ε after a round."""
        terms = {term.name: getattr(total, term.name) for term in fields(total) if term.name != "value"}
        return cls(round=round, epsilon=total.value, **terms)

    @property
    def total(self) -> Epsilon:
        """The ε with its terms."""
        terms = {term.name: getattr(self, term.name) for term in fields(Epsilon) if term.name != "value"}
        return Epsilon(value=self.epsilon, **terms)


ByClass = tuple[tuple[float | None, ...], ...]  # (classes, clients)


@dataclass(frozen=True)
class Smoothed(Event):
    """The server smoothed the models of a round: their spectra, and each client's model before and after.

    In a large round, only the first clients are listed, in the order of their slices. The spectra cover all clients.
    """

    round: int
    threshold: float  # of the singular values of the unnormalised Fourier slices
    clients: tuple[int, ...]  # in the order of their slices; empty if the server had only their sum
    spectra: Mapping[str, tuple[tuple[float, ...], ...]]  # by weight and frequency: singular values before, thinned
    ranks: Mapping[str, tuple[int, ...]]  # by weight: the rank of each value, from 1
    # of the last layer, before and after: mean squared distance between a client's row (with bias) and the others'
    rough: tuple[ByClass, ByClass]
    accuracy: tuple[ByClass, ByClass]  # per class and client, before and after; None: no such picture


@dataclass(frozen=True)
class Step(Event):
    """A step of an attack before its first guess, and how much of it is done."""

    what: str
    fraction: float = 0.0


@dataclass(frozen=True)
class Seen(Event):
    """What one adversary observed, and the original pictures.

    The originals are for display. An attack never receives them: with them its reconstruction would prove nothing.
    """

    view: str
    round: int
    client: int | None
    facts: Mapping[str, Any]  # pictures, labels, steps, uploads, kind, bound, std, noise-to-signal
    originals: tuple[str, ...]  # PNG in base64: small enough for an event
    trivial: Mapping[str, tuple[float, ...]]  # by metric, the score of each picture's mean colour


@dataclass(frozen=True)
class Pictured(Event):
    """The guess of one restart of an attack after some iterations."""

    attack: str
    iteration: int
    of: int
    restart: int
    loss: float | None
    pictures: tuple[str, ...]  # PNG in base64
    places: tuple[int, ...]  # the index of the original nearest to each
    psnr: tuple[float, ...]


@dataclass(frozen=True)
class Judged(Event):
    """The attack is over: the restart that it chose by its own objective, and the scores of that restart."""

    attack: str
    state: str  # `converged`, `not converged` or `diverged`
    reason: str
    restart: int
    places: tuple[int, ...]  # indices of the originals that were guessed; the next fields use this order
    labels: tuple[int, ...]
    numbers: Mapping[str, tuple[float, ...]]  # by metric, one score per picture
    trivial: Mapping[str, tuple[float, ...]]  # the same for each picture's mean colour
    curves: Mapping[str, tuple[float, ...]]  # by metric, the mean score at each shown iteration
    restarts: tuple[Mapping[str, Any], ...]  # each with loss, left, state, psnr
    floor: float  # the share of the upload that is noise
    # by metric, the scores of a public mean picture as a guess; empty before version 0.5
    mean_picture: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # for each picture: `nearer`, the share of its class that is nearer to the guess than the original is, and `kind`,
    # the chance that a picture of its class is nearer than another; empty for pictures without a class
    nearest: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # (`places` names the originals that have a class, where not all have one)
    # of an upload with several pictures: `hits` of `guesses` are nearest to a picture of the upload, with their `p`
    matching: Mapping[str, float] = field(default_factory=dict)
    # of more than eight pictures: the scores of the guesses against pictures that were never sent, by metric
    control: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scored(Event):
    """A membership attack is over: how well its scores tell members from others.

    The others are held-out test records of the same classes, or clients that never took part.
    """

    attack: str
    view: str
    unit: str  # `record`, or `user` where a client has the mean score of its records
    round: int
    client: int | None  # whose upload was seen; None: the view has no single upload
    members: int
    others: int
    auc: float
    interval: tuple[float, float]  # of the AUC, 95 %
    tpr: Mapping[str, float]  # by the FPR as text
    roc: tuple[tuple[float, float], ...]  # at most 60 points (FPR, TPR)
    numbers: Mapping[str, float] = field(default_factory=dict)  # by metric of membership


@dataclass(frozen=True)
class Warned(Event):
    """A warning for the user, and what to do about it."""

    reason: str
    remedy: str
    round: int = 0


@dataclass(frozen=True)
class Kept(Event):
    """Arrays stored under a name. The kind is `checkpoint`, `state`, `exposure`, `truth` or `models`."""

    kind: str
    name: str
    round: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    payload: Payload | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Finished(Event):
    """The run finished all its rounds, or stopped before it exceeded the budget."""

    ends: ClassVar[bool] = True
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Failed(Event):
    """The run failed."""

    ends: ClassVar[bool] = True
    reason: str
    remedy: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Cancelled(Event):
    """A user cancelled the run. Submitted again, it resumes from its checkpoint."""

    ends: ClassVar[bool] = True
    round: int


# The names in JSON. They never change, so that stored runs stay readable when a class is renamed.
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
    "scored": Scored,
    "warned": Warned,
    "kept": Kept,
    "finished": Finished,
    "failed": Failed,
    "cancelled": Cancelled,
}
KIND_NAMES = {kind: name for name, kind in KINDS.items()}

TUPLE_KINDS = (Spent, Smoothed, Seen, Pictured, Judged, Scored)  # `decode` turns their lists into tuples
UPDATE = "It may come from a newer LeakLens: update this one"


def encode(event: Event) -> dict[str, Any]:
    """An event as JSON, without its payload. The JSON never holds NaN or Infinity."""
    body: dict[str, Any] = {"event": KIND_NAMES[type(event)]}
    for declared in fields(event):
        if declared.name != "payload":
            body[declared.name] = finite(getattr(event, declared.name))
    return body


def decode(body: Any) -> Event:
    """The event that `encode` wrote. Anything else raises `Damaged`: guessing could misread a run."""
    if not isinstance(body, Mapping):
        raise Damaged(f"event: must be an object, got {type(body).__name__}", UPDATE)
    name = body.get("event")
    kind = KINDS.get(str(name))
    if kind is None:
        raise Damaged(f"event: no kind {name!r}", UPDATE)
    values = {key: value for key, value in body.items() if key != "event"}
    if kind in TUPLE_KINDS:
        values = {key: tuples(value) for key, value in values.items()}
    wrong = wrong_field(kind, values)
    if wrong:
        raise Damaged(f"event {name}: {wrong} has another type than it must have", UPDATE)
    try:
        return kind(**values)
    except TypeError as error:
        raise Damaged(f"event {name}: {error}", UPDATE) from None


def finite(value: Any) -> Any:
    """The value with None in place of every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def tuples(value: Any) -> Any:
    """The value with a tuple in place of every list: JSON has lists only."""
    if isinstance(value, Mapping):
        return {key: tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(map(tuples, value))
    return value
