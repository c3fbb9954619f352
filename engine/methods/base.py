"""The base class of all federated learning methods."""

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
    """A federated learning method: what the server sends, what a client uploads, and how the server merges uploads."""

    unprotected: ClassVar[str] = "fedavg"  # name of the baseline: the same method without protection
    headless: ClassVar[bool] = False  # True if clients share no last layer: the server has no complete model

    # --- the protected unit, and the memory the server begins with

    def unit(self) -> Literal["record", "user"] | None:
        """The unit that the guarantee protects; None if the method promises nothing."""
        return None

    def begin(self, world: World) -> Memory:
        """The memory of the server before the first round."""
        del world
        return {}

    # --- one exchange of one round

    def exchanges(self, world: World) -> int:
        """The number of exchanges between server and clients in one round."""
        del world
        return 1

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """The packet that the client at this seat receives."""
        del seat, memory
        return server

    @abstractmethod
    def train(self, client: Client, packet: Packet, private: Private | None, context: ClientContext) -> Trained:
        """Train one client: the upload is everything that leaves the client, and the private part never leaves it."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        """Train all clients of an exchange in parallel on the thread team."""
        return contexts[0].team.each(self.train, clients, packets, privates, contexts, progress=contexts[0].progress)

    @abstractmethod
    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        """The next server model and memory. Uploads are sorted by client id and may be empty."""

    # --- which models are tested, what is promised, what is public

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        """The models to test: `global`, and one per client id if clients have their own model.

        A personal method lists every client that has its own model. The other clients are tested with the global model.
        """
        del memory, privates
        return {"global": server}

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        """What this round releases to each view. The ledger adds up the releases of all rounds."""
        del world, round, cohort
        return tuple(Release(view, NoNoise("nothing is clipped or noised")) for view in VIEWS)

    @abstractmethod
    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        """The public facts that an attacker with this view has."""

    @abstractmethod
    def guarantee(self, world: World) -> Guarantee:
        """The privacy guarantee: a status from a fixed list, and the reason for it."""

    def remarks(self, world: World) -> tuple[Problem, ...]:
        """Warnings to show before the run. They do not block it."""
        del world
        return ()

    def landmarks(self, world: World) -> tuple[int, ...]:
        """Rounds after which the loop stores the state in addition to its schedule, for instance smoothing rounds."""
        del world
        return ()

    def effort(self, world: World, rounds: int) -> ExtraWork:
        """The extra work of this many rounds, apart from training and testing."""
        del world, rounds
        return ExtraWork()


METHODS: Shelf[Method] = Shelf("engine.methods", "method")


def noise_field(default: float = 1.0) -> Any:
    """The field `noise`. All methods share it, because the solver looks for the noise that reaches a target ε."""
    description = "Noise over sensitivity. More noise is more private and less accurate."
    return Field(default, ge=0, le=1000, title="noise σ", description=description)


def clip_field(default: float = 1.0) -> Any:
    """The field `clip`, which all methods with noise share."""
    description = "The clip bound: longer updates or gradients are shortened to this length before noise is added."
    return Field(default, gt=0, le=1000, title="clip C", description=description)
