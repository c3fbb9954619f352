"""What averaging methods share: clients upload the change of their weights and the server adds the mean."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.methods.base import Method, Trained, clip_field, noise_field
from engine.records import (
    Client,
    Guarantee,
    Memory,
    Packet,
    Private,
    Protocol,
    Seat,
    Upload,
    View,
    Weights,
    World,
)


def step_field(default: float) -> Any:
    words = "How far the server follows the mean update."
    return Field(default, gt=0, le=10, title="server step η", description=words)


class Averaging(Method):
    """Clients train from the server's model and upload the difference; the server adds the mean."""

    server_step: float = step_field(1.0)

    def fit(
        self, starts: Sequence[Packet], clients: Sequence[Client], contexts: Sequence[ClientContext]
    ) -> list[Weights]:
        """The weights each client ends with."""
        return sgd.fit(contexts, starts, clients)

    def upload(self, client: Client, start: Weights, end: Weights, context: ClientContext) -> Upload:
        """What leaves the client: the plain update, unless the method protects it."""
        del context
        return Upload(client.id, "update", weights.subtract(end, start))

    def train(self, client: Client, packet: Packet, private: Private | None, context: ClientContext) -> Trained:
        return self.train_all([client], [packet], [private], [context])[0]

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        ends = self.fit(packets, clients, contexts)
        uploads = contexts[0].team.each(self.upload, clients, packets, ends, contexts)
        return [(upload, private) for upload, private in zip(uploads, privates, strict=True)]

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The weight of each upload; what promises something divides by the constant K: |S| would tell who is there."""
        return [1.0 / (world.sampled if self.unit() else len(uploads))] * len(uploads)

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.total([upload.tensors for upload in uploads], self.shares(uploads, context.world))
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
