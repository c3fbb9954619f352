"""The base classes of averaging methods: clients upload their weight change, and the server adds the mean."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from engine.capabilities import Family, HasNoise, HasServerStep, Strength
from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import NO_CHANGE, StepChange
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

FAMILY = Family("no protection", "grey")


class Averaging(HasServerStep, Method):
    """Clients train from the server's model and upload the difference; the server adds the mean."""

    def start(self, packet: Packet) -> Weights:
        """The weights from which a client trains."""
        return packet.model

    def step_changes(self, packets: Sequence[Packet], privates: Sequence[Private | None]) -> Sequence[StepChange]:
        """What the method changes in each local step of each client, with or without DP-SGD."""
        del privates
        return [NO_CHANGE] * len(packets)

    def fit(
        self,
        starts: Sequence[Weights],
        clients: Sequence[Client],
        contexts: Sequence[ClientContext],
        changes: Sequence[StepChange],
    ) -> list[Weights]:
        """Train every client from its start; the weights after training."""
        return sgd.fit(contexts, starts, clients, changes)

    def upload(self, client: Client, start: Weights, end: Weights, context: ClientContext) -> Upload:
        """The upload of a client: the exact update, unless the method protects it."""
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
        starts = [self.start(packet) for packet in packets]
        ends = self.fit(starts, clients, contexts, self.step_changes(packets, privates))
        uploads = contexts[0].team.each(self.upload, clients, starts, ends, contexts)
        return [(upload, private) for upload, private in zip(uploads, privates, strict=True)]

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The weight of each upload in the mean."""
        # Privacy (ε of an outsider): a method with a guarantee divides by the constant K. A division by |S| would
        # show how many clients took part.
        divisor = world.sampled if self.unit() else len(uploads)
        return [1.0 / divisor] * len(uploads)

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.total([upload.model for upload in uploads], self.shares(uploads, context.world))
        return self.stepped(server, mean, self.server_step), memory

    def shared_weights(self, server: Weights, world: World) -> Weights:
        """The weights that clients share and upload: all of them, unless the method keeps a personal part."""
        del world
        return server

    def stepped(self, server: Weights, change: Weights, factor: float) -> Weights:
        """The server's model plus `factor` times a change of the shared weights."""
        return {**server, **weights.add({name: server[name] for name in change}, change, factor)}

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return Protocol(**baseline_protocol(self, world, seat, view))


class Proximal(Averaging):
    """An averaging method whose local steps are pulled back towards their start."""

    mu: float = Field(
        0.1,
        ge=0,
        le=100,
        title="pull μ",
        description="Local training adds μ ||w - start||² to the loss (without the half that the FedProx paper has): a "
        "larger μ keeps clients nearer to the server.",
    )

    def step_changes(self, packets: Sequence[Packet], privates: Sequence[Private | None]) -> Sequence[StepChange]:
        return [replace(change, pull=self.mu) for change in super().step_changes(packets, privates)]

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return replace(super().protocol(world, seat, view), proximal=self.mu)


def baseline_protocol(method: Averaging, world: World, seat: Seat, view: View) -> dict[str, Any]:
    """The protocol facts of an unprotected update of several steps. Methods with protection replace what differs."""
    size = world.sizes[seat.client]
    steps = world.local.epochs * -(-size // world.local.batch)
    return {
        "kind": "update",
        "local": world.local,
        "steps": steps,
        "batch": min(size, world.local.batch),
        "drawing": "whole" if size <= world.local.batch else "shuffled",
        "server_step": method.server_step,
        "uploads": {"server": 1, "outsider": world.sampled}.get(view, seat.cohort),
        "mean": world.mean,
        "scale": world.std,
    }


class Noised(HasNoise, Averaging):
    """An averaging method that clips and adds noise. The ledger adds up its releases."""

    strength: ClassVar[Strength | None] = Strength("noise", (0.0, 0.5, 1.0, 2.0), "noise σ over the clip")

    noise: float = noise_field()
    clip: float = clip_field()

    def noised_protocol(
        self, world: World, seat: Seat, view: View, clip: str, std: Callable[[int], float]
    ) -> dict[str, Any]:
        """The protocol facts with clip and noise. `std` gives the noise of one upload for a cohort size."""
        # An outsider does not know the cohort size, so its value uses the expected number of clients.
        clients = world.sampled if view == "outsider" else seat.cohort
        summed_std = std(clients) * math.sqrt(clients)
        stds = {"server": std(clients), "aggregate": summed_std}
        return baseline_protocol(self, world, seat, view) | {
            "clip": clip,
            "bound": self.clip,
            "noise": "gaussian" if self.noise else "none",
            "std": stds.get(view, summed_std * self.server_step / world.sampled),
        }

    def guarantee(self, world: World) -> Guarantee:
        if self.noise == 0:
            return Guarantee("none", "the noise is 0: clipping alone promises nothing")
        return self.promise(world)

    @abstractmethod
    def promise(self, world: World) -> Guarantee:
        """The guarantee if the noise is above 0."""
