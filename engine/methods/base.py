"""The base class of all federated learning methods."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from engine.capabilities import Family, Strength, Suggestion, Variant
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

    strength: ClassVar[Strength | None] = None  # the field that a picker shows as off, light, medium, strong
    variants: ClassVar[tuple[Variant, ...]] = ()
    suggestions: ClassVar[tuple[Suggestion, ...]] = ()  # of this class alone: a subclass does not inherit them
    # Whether `train` needs the loss of each step. Privacy: a loss that leaves the client is a release like any other.
    losses: ClassVar[bool] = False
    stateful: ClassVar[bool] = False  # whether clients keep values for each layer: they cannot train another model
    headless: ClassVar[bool] = False  # True if clients share no last layer: the server has no complete model

    @classmethod
    def family(cls) -> Family:
        """The family of the method: that of its nearest base class whose module declares one."""
        for base in cls.__mro__:
            family = vars(sys.modules[base.__module__]).get("FAMILY")
            if isinstance(family, Family):
                return family
        raise TypeError(f"{cls.__name__}: no base class belongs to a family")

    # --- the protected unit, and the memory the server begins with

    def unit(self) -> Literal["record", "user"] | None:
        """The unit that the guarantee protects; None if the method promises nothing."""
        return None

    def baseline(self) -> Method | None:
        """The same method without its protection; None if it protects nothing.

        A method without a guarantee has a baseline too, if it is meant to protect. The baseline keeps every field that
        is not part of the protection.
        """
        return METHODS.make("fedavg") if self.unit() else None

    def begin(self, world: World) -> Memory:
        """The memory of the server before the first round."""
        del world
        return {}

    def misfits(self, spec: Any, world: World) -> tuple[Problem, ...]:
        if self.unit() is None or not _has_batch_norm(world.build):
            return ()
        reason = (
            f"{self.name}: {spec.model.name} has batch normalisation, which mixes the pictures of a batch: "
            "no clip bounds the effect of one picture"
        )
        return (Problem(reason, "Choose a model with group normalisation"),)

    def shortages(self, spec: Any, counts: Tensor, world: World) -> tuple[Problem, ...]:
        """What the clients' data lack. `counts` (clients, classes) has their pictures of each class.

        Privacy: for checks before a run alone. No method with a guarantee may depend on them.
        """
        del spec, counts, world
        return ()

    # --- one exchange of one round

    def exchanges(self, world: World) -> int:
        """The number of exchanges between server and clients in one round."""
        del world
        return 1

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """The packet that the client at this seat receives."""
        del seat, memory
        return Packet(server)

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

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The weight of each upload in the sum that the server uses."""
        del world
        return [1.0 / len(uploads)] * len(uploads)

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

    def repeated_releases(self, world: World, counts: NDArray[np.intp]) -> tuple[Release, ...] | None:
        """The releases of many rounds together, where `counts` says in how many of them each client was.

        None: they depend on more than that. A class that changes `releases` must change this too, or it is not used.
        """
        del world, counts
        return None

    @abstractmethod
    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        """The public facts that an attacker with this view has."""

    def known(self, view: View, seat: Seat, memory: Memory) -> Mapping[str, Weights]:
        """What an observer could have summed up from earlier rounds, such as the state that the server keeps."""
        del view, seat, memory
        return {}

    def lacks(self, view: View, seat: Seat, memory: Memory) -> str:
        """What an observer would need to compute the upload of a guess exactly; empty if it has everything."""
        del view, seat, memory
        return ""

    def received_parts(self, seat: Seat, uploads: Sequence[Upload], world: World) -> list[float]:
        """The factor of each upload in the change of the model that the client at this seat receives after a merge.

        The client knows its own factor, and subtracts its own upload times that.
        """
        protocol = self.protocol(world, seat, "client")
        step = -protocol.server_step if protocol.kind == "gradient" else protocol.server_step
        return [step * share for share in self.shares(uploads, world)]

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

    def work(self, world: World, rounds: int) -> ExtraWork:
        """The extra work of this many rounds, apart from the protocol's steps and testing."""
        del world, rounds
        return ExtraWork()

    def trial(self) -> Method:
        """The same method with the least work that still shows its pace. A forecast times it."""
        return self


METHODS: Shelf[Method] = Shelf("engine.methods", "method")


@lru_cache(maxsize=8)
def _has_batch_norm(build: Callable[[torch.Generator], nn.Module]) -> bool:
    module = build(torch.Generator())
    return any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules())


def noise_field(default: float = 1.0) -> Any:
    """The field `noise`. All methods share it, because the solver looks for the noise that reaches a target ε."""
    description = "Noise over sensitivity. More noise is more private and less accurate."
    return Field(default, ge=0, le=1000, title="noise σ", description=description)


def clip_field(default: float = 1.0) -> Any:
    """The field `clip`, which all methods with noise share."""
    description = "The clip bound: longer updates or gradients are shortened to this length before noise is added."
    return Field(default, gt=0, le=1000, title="clip C", description=description)
