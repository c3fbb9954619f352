"""FedLAP: clients upload pictures that act on the model as their data do, near the server's model (arXiv:2302.01068).

Paper → here:  S_k → the uploaded pictures,  r → radius,  r_k → the public number `radius` of an upload,
R_i → trajectories,  R_b → boost,  R_l → inner,  "at most 5 loops" → stops,  τ → image-lr,  η → lr · server-step,
λ of eq. 16 → square.

At each stop of a trajectory a client takes the gradients of `batches` batches, moves its pictures `boost` times towards
each, and then trains its model `inner` steps on the pictures. A trajectory ends where the model leaves the radius.
Then the client trains on its pictures alone, and uploads with them the distance at which its real loss was smallest.
The published code starts with real pictures, and the paper with noise: `real` uploads them as they are in part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from engine.compute.condensing import MovingPictures, PlainModel
from engine.compute.context import ClientContext
from engine.methods.base import METHODS
from engine.methods.synthetic.base import uniform_batches
from engine.methods.synthetic.trajectories import Trajectories, comparison
from engine.part import Problem
from engine.records import Client, ExtraWork, Guarantee, Upload, Weights, World

RADIUS = "radius"  # the public number of an upload
LOOK_EVERY = 5  # steps between two measurements of the real loss
PAST_IT = 3  # measurements without a smaller loss, after which it has turned
LENGTHS = "lengths"  # the slot with the length of each layer's real gradient


@METHODS.add("fedlap", title="FedLAP", source="arXiv:2302.01068")
class FedLAP(Trajectories):
    """Clients upload pictures made from their gradients, and the server learns from them. Nothing is protected."""

    begins: Literal["noise", "previous", "real"] = Field(
        "previous",
        title="pictures start as",
        description="Noise, the pictures of the round before, or the client's own pictures, which then leave it.",
    )
    matching: Literal["cosine", "cosine+mse", "mse", "calibrated"] = Field(
        "cosine+mse",
        title="matching",
        description="What of two gradients is compared. `calibrated` uploads the lengths of the real one as well.",
    )
    square: float = Field(
        0.1, ge=0, le=1000, title="weight λ", description="Weight of the squared difference in `cosine+mse`."
    )
    strategy: Literal["min", "max", "median", "fixed"] = Field(
        "min",
        title="server's radius",
        description="Which radius of the clients' the server keeps to. `fixed` keeps to none and takes all its steps.",
    )

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        if self.matching != "calibrated" or (spec.clients == 1 and self.accesses == 1):
            return super().problems(spec)
        reason = (
            f"{self.name}: matching: calibrated needs one client and one batch a round, "
            f"got {spec.clients} clients and {self.accesses} batches"
        )
        remedy = "Set clients, trajectories, stops and batches to 1, or choose cosine+mse"
        return (*super().problems(spec), Problem(reason, remedy))

    @property
    def beginning(self) -> str:
        return self.begins

    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        lengths: list[Tensor] = []
        batches = uniform_batches(client, context)

        def access(model: PlainModel) -> list[Tensor]:
            gradient = batches(model)
            lengths[:] = [tensor.norm() for tensor in gradient]
            return gradient

        self.follow(access, pictures, start, comparison(self.matching, self.square), context)
        upload = Upload(client.id, "samples", samples=pictures.samples)
        if self.matching == "calibrated":
            names = list(context.world.weights)
            return replace(upload, extra={LENGTHS: dict(zip(names, lengths, strict=True))})
        if self.strategy == "fixed":
            return upload
        return replace(upload, public={RADIUS: self.best_radius(client, pictures, start, context)})

    def best_radius(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> float:
        """The distance from the server's model at which a model that learns from the pictures has the least real loss.

        Privacy: it is measured on private data without noise.
        """
        model = PlainModel.of(context.world, start, context.rng("dropout"))
        lr = self.server_step * self.rate(context.world, context.seat.round)
        least, best, worse = model.loss(client.x, client.y), 0.0, 0
        for step in range(1, self.server_steps + 1):
            model.move(model.gradient(pictures.x, pictures.y), lr)
            reached = min(model.distance_to(start), self.radius)
            if step % LOOK_EVERY and step < self.server_steps and reached < self.radius:
                continue
            loss = model.loss(client.x, client.y)
            worse = 0 if loss < least else worse + 1
            if loss < least:
                least, best = loss, reached
            if reached == self.radius or worse == PAST_IT:
                break
        return best

    def ball(self, uploads: Sequence[Upload]) -> float | None:
        radii = [upload.public[RADIUS] for upload in uploads if RADIUS in upload.public]
        if not radii:
            return None
        if self.strategy == "median":
            return float(np.median(radii))
        return min(radii) if self.strategy == "min" else max(radii)

    def calibrated(self, names: Sequence[str], gradient: list[Tensor], uploads: Sequence[Upload]) -> list[Tensor]:
        if self.matching != "calibrated" or not uploads[0].extra:
            return gradient
        lengths = uploads[0].extra[LENGTHS]
        return [
            tensor * (lengths[name] / tensor.norm().clamp_min(1e-12))
            for name, tensor in zip(names, gradient, strict=True)
        ]

    def work(self, world: World, rounds: int) -> ExtraWork:
        """With the steps that measure a client's radius: each is a step on the pictures, and a pass over the data."""
        pictures = self.per_class * max(len(held) for held in world.held)
        access = world.local.batch + 4 * self.boost * pictures
        trial = self.trial()
        assert isinstance(trial, FedLAP)
        left_out = self.server_steps - trial.server_steps
        look = pictures + max(world.sizes) / 3 / LOOK_EVERY
        measured = 0.0 if self.strategy == "fixed" else left_out * look / access
        return replace(super().work(world, rounds), local_steps=rounds * world.sampled * measured)

    def guarantee(self, world: World) -> Guarantee:
        if self.begins == "real":
            return Guarantee("none", "the pictures start as private ones, and leave the client hardly changed")
        return super().guarantee(world)
