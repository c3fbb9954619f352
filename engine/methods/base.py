"""The contract of a method, and the averaging family that most methods belong to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.compute.context import ClientContext
from engine.part import Part, Problem
from engine.records import (
    VIEWS,
    Client,
    ExtraWork,
    Guarantee,
    Memory,
    NoNoise,
    Packet,
    Private,
    Protocol,
    Release,
    Seat,
    Upload,
    View,
    Weights,
    World,
)
from engine.registry import Shelf

Trained = tuple[Upload, Private | None]


class Method(Part):
    """A way to learn together: what the server sends, what a client does and uploads, how the server merges."""

    unprotected: ClassVar[str] = "fedavg"  # the method that does the same without protection: what its cost is told by
    headless: ClassVar[bool] = False  # whether no last layer is shared: the server has no model to publish

    # --- who is protected, and what the server begins with

    def unit(self) -> Literal["record", "user"] | None:
        """What one unit of the promise is; None where nothing is promised."""
        return None

    def begin(self, world: World) -> Memory:
        """What the server remembers before the first round."""
        del world
        return {}

    # --- one exchange of one round

    def exchanges(self, world: World) -> int:
        """How often server and clients exchange in one round."""
        del world
        return 1

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """What the client at this seat receives."""
        del seat, memory
        return server

    @abstractmethod
    def train(self, client: Client, packet: Packet, private: Private | None, context: ClientContext) -> Trained:
        """What one client does: the upload is everything that leaves, the private part never does."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        """All clients of an exchange, side by side on the team."""
        return contexts[0].team.each(self.train, clients, packets, privates, contexts, progress=contexts[0].progress)

    @abstractmethod
    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        """The next server model; uploads come by client id, and there may be none."""

    # --- what is judged, promised and known

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        """The models to test: `global`, and by client id where a client has a model of its own.

        A personal method lists every client it has a model for; the others are judged with the global one.
        """
        del memory, privates
        return {"global": server}

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        """What each view learns in this round; the ledger adds it up."""
        del world, round, cohort
        return tuple(Release(view, NoNoise("nothing is clipped or noised")) for view in VIEWS)

    @abstractmethod
    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        """The public facts an attacker at this place knows."""

    @abstractmethod
    def guarantee(self, world: World) -> Guarantee:
        """What is promised, in words of one fixed list, and why."""

    def remarks(self, world: World) -> tuple[Problem, ...]:
        """What the asker should know before the run, though nothing forbids it."""
        del world
        return ()

    def landmarks(self, world: World) -> tuple[int, ...]:
        """Rounds after which the state is worth keeping, whatever the schedule (a smoothing, for instance)."""
        del world
        return ()

    def effort(self, world: World, rounds: int) -> ExtraWork:
        """What so many rounds cost beside training and testing."""
        del world, rounds
        return ExtraWork()


METHODS: Shelf[Method] = Shelf("engine.methods", "method")


def noise_field(default: float = 1.0) -> Any:
    """The noise multiplier, told the same way by every method that has one: a target ε is solved for it."""
    words = "Noise over sensitivity. More noise is more private and less accurate."
    return Field(default, ge=0, le=1000, title="noise σ", description=words)


def clip_field(default: float = 1.0) -> Any:
    words = "Nothing that is noised may be longer than this; what is longer is shortened."
    return Field(default, gt=0, le=1000, title="clip C", description=words)
