"""The base class of per-batch methods: each exchange uploads one gradient, and the server steps along the mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field

from engine.capabilities import Family, HasServerStep, server_step_field
from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.methods.base import Method, Trained
from engine.part import Problem
from engine.records import Client, Memory, Packet, Private, Protocol, Seat, Upload, View, Weights, World

FAMILY = Family("changes each batch", "ink")


class PerBatch(HasServerStep, Method):
    """Clients upload the gradient of one batch at a time."""

    batches: Literal["every", "one"] = Field(
        "every",
        title="batches a round",
        description="Whether a round goes through all batches, one exchange each, or takes one. "
        "The smallest client sets their number; larger clients leave the rest of their data out.",
    )
    server_step: float = server_step_field(
        1.0, "The step of the server is this factor times the learning rate of the clients."
    )

    def exchanges(self, world: World) -> int:
        if self.batches == "one":
            return 1
        return world.local.epochs * max(1, min(world.sizes) // world.local.batch)

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        if not spec.local.momentum and not spec.local.weight_decay:
            return ()
        reason = f"{self.name}: momentum and weight decay must be 0: clients take no local steps"
        return (Problem(reason, "Leave them out, or choose fedavg"),)

    def remarks(self, world: World) -> tuple[Problem, ...]:
        largest = max(world.sizes)
        used = world.local.batch * max(1, min(world.sizes) // world.local.batch)
        left = largest - min(used, largest)
        if self.batches == "one" or not left:
            return ()
        reason = f"every client goes through as many batches as the smallest one has: up to {left} pictures of a client"
        remedy = "Choose a batch that divides what the clients hold, or a partition that deals evenly"
        return (Problem(f"{reason} are left out of a round", remedy, fatal=False),)

    def train(self, client: Client, packet: Packet, private: Private | None, context: ClientContext) -> Trained:
        places = self.batch(len(client.y), context)
        context.used = places
        gradient = sgd.gradient(context, packet.model, client.x[places], client.y[places])
        return Upload(client.id, "gradient", gradient), private

    def batch(self, size: int, context: ClientContext) -> torch.Tensor:
        """The places of the pictures of this exchange: one batch of the random order of its epoch."""
        length = min(size, context.world.local.batch)
        if self.batches == "one":
            per_epoch = max(1, size // length)
        else:
            per_epoch = self.exchanges(context.world) // context.world.local.epochs
        epoch, place = divmod(context.seat.exchange - 1, per_epoch)
        rng = context.seeds.rng("batches", context.seat.round, context.seat.client, epoch)
        order = torch.randperm(size, generator=rng, device="cpu").to(context.device)
        return order[place * length : (place + 1) * length]

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.total([upload.model for upload in uploads], [1 / len(uploads)] * len(uploads))
        return weights.add(server, mean, -self.server_step * context.world.local.lr), memory

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        uploads = {"server": 1, "outsider": world.sampled}.get(view, seat.cohort)
        batch = min(world.sizes[seat.client], world.local.batch)
        return Protocol(
            kind="gradient",
            local=world.local,
            steps=1,
            batch=batch,
            drawing="whole" if batch == world.sizes[seat.client] else "shuffled",
            server_step=self.server_step * world.local.lr,
            uploads=uploads,
            mean=world.mean,
            scale=world.std,
        )
