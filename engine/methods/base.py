"""The contract of a method, and the averaging family that most methods belong to."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.compute import sgd, weights
from engine.compute.context import Desk
from engine.part import Part, Problem
from engine.records import (
    VIEWS,
    Clear,
    Client,
    Effort,
    Guarantee,
    Memory,
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
    def train(self, client: Client, packet: Packet, private: Private | None, desk: Desk) -> Trained:
        """What one client does: the upload is everything that leaves, the private part never does."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        desks: Sequence[Desk],
    ) -> list[Trained]:
        """All clients of an exchange, side by side on the crew."""
        return desks[0].crew.each(self.train, clients, packets, privates, desks, tell=desks[0].tell)

    @abstractmethod
    def merge(self, server: Weights, uploads: Sequence[Upload], memory: Memory, desk: Desk) -> tuple[Weights, Memory]:
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
        return tuple(Release(view, Clear("nothing is clipped or noised")) for view in VIEWS)

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

    def effort(self, world: World, rounds: int) -> Effort:
        """What so many rounds cost beside training and testing."""
        del world, rounds
        return Effort()


METHODS: Shelf[Method] = Shelf("engine.methods", "method")


def noise_field(default: float = 1.0) -> Any:
    """The noise multiplier, told the same way by every method that has one: a target ε is solved for it."""
    words = "Noise over sensitivity. More noise is more private and less accurate."
    return Field(default, ge=0, le=1000, title="noise σ", description=words)


def clip_field(default: float = 1.0) -> Any:
    words = "Nothing that is noised may be longer than this; what is longer is shortened."
    return Field(default, gt=0, le=1000, title="clip C", description=words)


def step_field(default: float) -> Any:
    words = "How far the server follows the mean update."
    return Field(default, gt=0, le=10, title="server step η", description=words)


class Averaging(Method):
    """Clients train from the server's model and upload the difference; the server adds the mean."""

    server_step: float = step_field(1.0)

    def fit(self, starts: Sequence[Packet], clients: Sequence[Client], desks: Sequence[Desk]) -> list[Weights]:
        """The weights each client ends with."""
        return sgd.fit(desks, starts, clients)

    def upload(self, client: Client, start: Weights, end: Weights, desk: Desk) -> Upload:
        """What leaves the client: the plain update, unless the method protects it."""
        del desk
        return Upload(client.id, "update", weights.subtract(end, start))

    def train(self, client: Client, packet: Packet, private: Private | None, desk: Desk) -> Trained:
        return self.train_all([client], [packet], [private], [desk])[0]

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        desks: Sequence[Desk],
    ) -> list[Trained]:
        ends = self.fit(packets, clients, desks)
        uploads = desks[0].crew.each(self.upload, clients, packets, ends, desks)
        return [(upload, private) for upload, private in zip(uploads, privates, strict=True)]

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The weight of each upload; what promises something divides by the constant K: |S| would tell who is there."""
        return [1.0 / (world.sampled if self.unit() else len(uploads))] * len(uploads)

    def merge(self, server: Weights, uploads: Sequence[Upload], memory: Memory, desk: Desk) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.total([upload.tensors for upload in uploads], self.shares(uploads, desk.world))
        return self.moved(server, mean, self.server_step), memory

    def common(self, server: Weights, world: World) -> Weights:
        """What is learnt together, and so uploaded: everything, unless a part is personal."""
        del world
        return server

    def moved(self, server: Weights, change: Weights, factor: float) -> Weights:
        """The server's model after a change of what is learnt together."""
        return {**server, **weights.add({name: server[name] for name in change}, change, factor)}

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return Protocol(**plain_protocol(self, world, seat, view))


def plain_protocol(method: Averaging, world: World, seat: Seat, view: View) -> dict[str, Any]:
    """The facts of an unprotected multi-step update: a method with protection replaces what differs."""
    size = world.sizes[seat.client]
    steps = world.local.epochs * -(-size // world.local.batch)
    return {
        "kind": "update",
        "local": world.local,
        "steps": steps,
        "batch": min(size, world.local.batch),
        "drawing": "whole" if size <= world.local.batch else "shuffled",
        "server_step": method.server_step,
        "uploads": {"server": 1, "aggregate": seat.cohort}.get(view, world.sampled),
        "mean": world.mean,
        "scale": world.std,
    }


class Noised(Averaging):
    """The averaging methods that clip and noise: what they promise, the ledger adds up."""

    noise: float = noise_field()
    clip: float = clip_field()

    def noised_protocol(
        self, world: World, seat: Seat, view: View, clip: str, std: Callable[[int], float]
    ) -> dict[str, Any]:
        """`std` of one upload, by the number of clients in its round; an outsider does not know that number."""
        outside = std(world.sampled) * math.sqrt(world.sampled) * self.server_step / world.sampled
        inside = {"server": std(seat.cohort), "aggregate": std(seat.cohort) * math.sqrt(seat.cohort)}
        return plain_protocol(self, world, seat, view) | {
            "clip": clip,
            "bound": self.clip,
            "noise": "gaussian" if self.noise else "none",
            "std": inside.get(view, outside),
        }

    def guarantee(self, world: World) -> Guarantee:
        if self.noise == 0:
            return Guarantee("none", "the noise is 0: clipping alone promises nothing")
        return self.promise(world)

    @abstractmethod
    def promise(self, world: World) -> Guarantee:
        """The guarantee where there is noise."""
