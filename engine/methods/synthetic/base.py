"""The base classes of methods whose clients upload pictures that they made, from which the server learns."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from engine.capabilities import Family, HasNoise, HasServerStep, Strength, server_step_field
from engine.compute import dp_sgd
from engine.compute.condensing import MovingPictures, PlainModel
from engine.compute.context import ClientContext
from engine.methods.base import Method, Trained, clip_field, noise_field
from engine.methods.record_level.base import record_promise, record_releases, repeated_record_releases
from engine.part import Problem
from engine.records import (
    Client,
    ExtraWork,
    Guarantee,
    Memory,
    Packet,
    Private,
    Protocol,
    Release,
    Samples,
    Seat,
    Upload,
    View,
    Weights,
    World,
)

FAMILY = Family("synthetic data", "yellow")
PICTURES = "pictures"  # the name of a client's own pictures in its private part
INSIDE = 1 - 1e-6  # of the radius: rounding to single precision must not leave the ball

Access = Callable[[PlainModel], list[Tensor]]  # one access to the private data: a gradient at these weights


class Synthetic(HasServerStep, Method):
    """Clients upload labelled pictures that they made. The server trains on the pictures of all clients."""

    per_class: int = Field(
        10, ge=1, le=500, title="pictures a class", description="Pictures that a client makes of each class it holds."
    )
    image_lr: float = Field(
        10.0, gt=0, le=1e5, title="picture step", description="The learning rate of the pictures that a client makes."
    )
    server_steps: int = Field(
        100, ge=1, le=10_000, title="server steps", description="Steps that the server trains on the uploaded pictures."
    )
    server_step: float = server_step_field(
        1.0, "The server trains on the pictures with this factor times the learning rate."
    )
    decay: Literal["cosine", "none"] = Field(
        "cosine", title="decay", description="How the learning rate falls over the rounds: as half a cosine, or not."
    )

    @property
    def beginning(self) -> str:
        """What the pictures are at first: noise, those of the round before (previous) or the client's own (real)."""
        return "noise"

    def shortages(self, spec: Any, counts: Tensor, world: World) -> tuple[Problem, ...]:
        if self.beginning != "real":
            return ()
        for client, held in enumerate(world.held):
            for label in held:
                count = int(counts[client, label])
                if count < self.per_class:
                    rule = f"{self.name}: per-class: must be at most {count} where pictures start as real ones"
                    reason = f"{rule}, got {self.per_class}: client {client} holds {count} pictures of class {label}"
                    return (Problem(reason, "Take fewer pictures a class, or let them start as noise"),)
        return ()

    def misfits(self, spec: Any, world: World) -> tuple[Problem, ...]:
        if world.pictures:
            return super().misfits(spec, world)
        rule = f"{self.name}: makes pictures, and {spec.dataset.name} holds {spec.dataset.noun}"
        return (Problem(rule, "Choose a data set of pictures, or another method"), *super().misfits(spec, world))

    # --- the client

    @abstractmethod
    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        """Change the pictures so that the model learns from them as from the client's data; what is uploaded."""

    def train(self, client: Client, packet: Packet, private: Private | None, context: ClientContext) -> Trained:
        pictures = self.first_pictures(client, private, context)
        upload = self.condense(client, pictures, packet.model, context)
        return upload, {PICTURES: pictures.x}

    def first_pictures(self, client: Client, private: Private | None, context: ClientContext) -> MovingPictures:
        """The pictures before they are changed: noise, those of the round before, or pictures of the client."""
        labels = self.labels(context.world, client.id).to(context.device)
        if self.beginning == "previous" and private:
            return MovingPictures(private[PICTURES], labels)
        rng = context.rng("pictures")
        noise = torch.randn((len(labels), *context.world.shape), generator=rng, device="cpu").to(context.device)
        if self.beginning == "real":
            noise = own_pictures(client, labels, noise, rng)
        return MovingPictures(noise, labels)

    def labels(self, world: World, client: int) -> Tensor:
        """The labels of a client's pictures: equally many of each class that it is declared to hold.

        Privacy: the declared classes are public. Classes that were found in the data would give away a class with a
        single record.
        """
        held = torch.tensor(world.held[client], device="cpu")
        return held.repeat_interleave(self.per_class)

    def rate(self, world: World, round: int) -> float:
        """The learning rate of models in this round."""
        if self.decay == "none":
            return world.local.lr
        return world.local.lr * (1 + math.cos(math.pi * (round - 1) / max(1, world.rounds))) / 2

    # --- the server

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The weight of each client's pictures: its part of all records. Sizes are public."""
        sizes = [world.sizes[upload.client] for upload in uploads]
        return [size / sum(sizes) for size in sizes]

    def ball(self, uploads: Sequence[Upload]) -> float | None:
        """How far the server may move in a round; None: as far as its steps lead."""
        del uploads
        return None

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        model = PlainModel.of(context.world, server, context.rng("dropout"))
        parts = [upload.samples for upload in uploads if upload.samples]
        samples = Samples(torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts]))
        weights_of = zip(parts, self.shares(uploads, context.world), strict=True)
        shares = torch.cat([part.x.new_full((len(part.y),), share / len(part.y)) for part, share in weights_of])
        radius = self.ball(uploads)
        lr = self.server_step * self.rate(context.world, context.seat.round)
        for _ in range(self.server_steps):
            before = model.weights()
            gradient = model.gradient(samples.x, samples.y, shares)
            model.move(self.calibrated(model.names, gradient, uploads), lr)
            if radius is not None and model.distance_to(server) >= radius:
                model.load(shortened(server, before, model.weights(), radius))
                break
        return model.weights(), memory

    def calibrated(self, names: Sequence[str], gradient: list[Tensor], uploads: Sequence[Upload]) -> list[Tensor]:
        """The gradient of the uploaded pictures as the server follows it."""
        del names, uploads
        return gradient

    # --- what is public, and the work

    @property
    def accesses(self) -> int:
        """How often a client reads its data in a round."""
        return 1

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        size = world.sizes[seat.client]
        batch = min(size, world.local.batch)
        return Protocol(
            kind="samples",
            local=world.local,
            steps=self.accesses,
            batch=batch,
            drawing="whole" if batch == size else "shuffled",
            uploads={"server": 1, "outsider": world.sampled}.get(view, seat.cohort),
            mean=world.mean,
            scale=world.std,
        )

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "the pictures are made from exact gradients of the client's data, without noise")

    @property
    def picture_steps(self) -> int:
        """Steps of the pictures for one access to the data."""
        return 1

    def work(self, world: World, rounds: int) -> ExtraWork:
        """The server's training that the trial leaves out, in accesses of a client.

        A step of the pictures takes about four gradients of them, one access one gradient of a batch besides.
        """
        pictures = self.per_class * max(len(held) for held in world.held)
        access = world.local.batch + 4 * self.picture_steps * pictures
        trial = self.trial()
        assert isinstance(trial, Synthetic)
        steps = rounds * (self.server_steps - trial.server_steps)
        return ExtraWork(server_steps=steps * world.sampled * pictures / access)

    def trial(self) -> Method:
        return self.with_(server_steps=min(2, self.server_steps))


def own_pictures(client: Client, labels: Tensor, noise: Tensor, rng: torch.Generator) -> Tensor:
    """Pictures of the client with these labels. A class that it does not hold stays noise."""
    chosen = noise.clone()
    for label in labels.unique().tolist():
        places = torch.nonzero(client.y == label).flatten()
        wanted = torch.nonzero(labels == label).flatten()
        if len(places):
            order = torch.randperm(len(places), generator=rng, device="cpu").to(places.device)
            chosen[wanted] = client.x[places[order[torch.arange(len(wanted), device="cpu") % len(places)]]]
    return chosen


def shortened(start: Weights, before: Weights, after: Weights, radius: float) -> dict[str, Tensor]:
    """The point of the step from `before` to `after` that lies on the ball around `start` (eq. 11 of FedLAP)."""
    inside = {name: (before[name] - start[name]).double() for name in start}
    step = {name: (after[name] - before[name]).double() for name in start}
    a = sum(float(tensor.square().sum()) for tensor in step.values())
    b = sum(float((inside[name] * step[name]).sum()) for name in start)
    c = sum(float(tensor.square().sum()) for tensor in inside.values()) - (radius * INSIDE) ** 2
    part = max(0.0, (-b + math.sqrt(max(0.0, b * b - a * c))) / a) if a else 0.0
    return {name: torch.add(before[name], step[name].to(before[name].dtype), alpha=part) for name in start}


def uniform_batches(client: Client, context: ClientContext) -> Access:
    """Gradients of batches that are drawn again each time, without noise."""
    rng = context.rng("batches")
    size = len(client.y)
    used = torch.zeros(size, dtype=torch.bool, device="cpu")

    def access(model: PlainModel) -> list[Tensor]:
        places = torch.randperm(size, generator=rng, device="cpu")[: context.world.local.batch]
        used[places] = True
        context.used = torch.nonzero(used).flatten().to(context.device)
        places = places.to(context.device)
        return model.gradient(client.x[places], client.y[places])

    return access


class NoisedSynthetic(HasNoise, Synthetic):
    """Synthetic pictures made from noised gradients alone: everything else that a client does is post-processing."""

    strength: ClassVar[Strength | None] = Strength("noise", (0.0, 0.5, 1.0, 2.0), "noise σ over the clip")

    noise: float = noise_field()
    clip: float = clip_field()

    def unit(self) -> Literal["record", "user"] | None:
        return "record"

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        """The same weight for the pictures of each client."""
        return [1 / len(uploads)] * len(uploads)

    def noised_batches(self, client: Client, context: ClientContext) -> Access:
        """Gradients of Poisson batches, clipped by example, with one noise for each batch."""
        gradients = dp_sgd.NoisedGradients(context, client, self.clip, self.noise)

        def access(model: PlainModel) -> list[Tensor]:
            noised = gradients.at(model.weights())
            context.used = torch.nonzero(gradients.used).flatten()
            return [noised[name] for name in model.names]

        return access

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        del round
        return record_releases(self.noise, world, cohort, lambda size: self.accesses)

    def repeated_releases(self, world: World, counts: NDArray[np.intp]) -> tuple[Release, ...] | None:
        return repeated_record_releases(self, world, counts)

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        size = world.sizes[seat.client]
        batch = round(dp_sgd.batch_rate(size, world.local) * size)
        drawing: Literal["whole", "poisson"] = "whole" if batch == size else "poisson"
        return replace(super().protocol(world, seat, view), batch=batch, drawing=drawing)

    def guarantee(self, world: World) -> Guarantee:
        if self.noise == 0:
            return Guarantee("none", "the noise is 0: clipping alone promises nothing")
        return record_promise(world)
