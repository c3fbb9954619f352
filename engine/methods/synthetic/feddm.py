"""FedDM: clients upload pictures with the mean features of their data (Xiong et al. 2023, arXiv:2207.09653).

Paper → here:  ρ → radius,  iterations → iterations,  images per class → per-class,  η of images → image-lr.

In each iteration a client draws a model near the server's. For each of its classes it compares the mean features and
the mean outputs of a batch and of its pictures. Comparing class by class reveals more than one record does, so FedLAP
leaves its private form out of its comparison.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.compute.condensing import MovingPictures, PlainModel
from engine.compute.context import ClientContext
from engine.methods.base import METHODS, Method
from engine.methods.synthetic.base import Synthetic
from engine.part import Problem
from engine.records import Client, Guarantee, Upload, Weights, World


@METHODS.add("feddm", title="FedDM", source="arXiv:2207.09653")
class FedDM(Synthetic):
    """Clients upload pictures that a model sees as it sees their data, and the server learns from them."""

    begins: Literal["noise", "real"] = Field(
        "noise",
        title="pictures start as",
        description="Noise, or as in the paper the client's own pictures, which then leave it.",
    )
    image_lr: float = Field(
        1.0, gt=0, le=1e5, title="picture step", description="The learning rate of the pictures that a client makes."
    )
    iterations: int = Field(
        50,
        ge=1,
        le=10_000,
        title="iterations",
        description="Models near the server's that compare the pictures.",
    )
    radius: float = Field(
        5.0, gt=0, le=1e6, title="radius ρ", description="How far these models are from the server's at most."
    )

    def shortages(self, spec: Any, counts: Tensor, world: World) -> tuple[Problem, ...]:
        for client, held in enumerate(world.held):
            for label in held:
                if not int(counts[client, label]):
                    rule = f"{self.name}: compares class by class, and client {client} has none of class {label}"
                    return (Problem(rule, "Choose a partition that deals every class, or fedlap"),)
        return super().shortages(spec, counts, world)

    @property
    def beginning(self) -> str:
        return self.begins

    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        model = PlainModel.of(context.world, start, context.rng("dropout"))
        features = Features(model.module, context.world.head[0])
        batches, places = context.rng("batches"), context.rng("models")
        try:
            for number in range(self.iterations):
                model.load(nearby(start, self.radius, places))
                pictures.move(self._slopes(client, pictures, features, batches, context), self.image_lr)
                context.progress((number + 1) / self.iterations)
        finally:
            features.remove()
        return Upload(client.id, "samples", samples=pictures.samples)

    def _slopes(
        self,
        client: Client,
        pictures: MovingPictures,
        features: Features,
        rng: torch.Generator,
        context: ClientContext,
    ) -> Tensor:
        """The gradient, by picture, of how far the means of the classes lie apart."""
        x = pictures.x.detach().requires_grad_()
        apart = x.new_zeros(())
        for label in pictures.y.unique().tolist():
            held = torch.nonzero(client.y == label).flatten()
            if not len(held):
                continue
            order = torch.randperm(len(held), generator=rng, device="cpu").to(held.device)
            with torch.no_grad():
                real = features.means(client.x[held[order[: context.world.local.batch]]])
            made = features.means(x[pictures.y == label])
            for mean, other in zip(made, real, strict=True):
                apart = apart + (mean - other).square().sum()
        if not apart.requires_grad:  # a client without any record of its classes
            return torch.zeros_like(x)
        return torch.autograd.grad(apart, x)[0]

    @property
    def accesses(self) -> int:
        return self.iterations

    def trial(self) -> Method:
        return self.with_(iterations=1, server_steps=min(2, self.server_steps))

    def guarantee(self, world: World) -> Guarantee:
        del world
        if self.begins == "real":
            return Guarantee("none", "the pictures start as private ones, and leave the client hardly changed")
        return Guarantee("none", "the pictures are made from exact means of the client's data, without noise")


class Features:
    """The outputs of a model, and what goes into its last layer."""

    def __init__(self, module: nn.Module, head: str) -> None:
        self._module = module
        self._inputs: Tensor | None = None
        last = module.get_submodule(head.rpartition(".")[0])
        self._hook = last.register_forward_pre_hook(self._keep)

    def _keep(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        del module
        self._inputs = inputs[0]

    def means(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean features and the mean outputs."""
        outputs = self._module(x)
        assert self._inputs is not None
        return self._inputs.mean(0), outputs.mean(0)

    def remove(self) -> None:
        self._hook.remove()


def nearby(start: Weights, radius: float, rng: torch.Generator) -> dict[str, Tensor]:
    """A model in a random direction, at a random distance up to the radius."""
    steps = {name: torch.randn(tensor.shape, generator=rng, device="cpu") for name, tensor in start.items()}
    length = float(sum(step.square().sum() for step in steps.values()) ** 0.5)
    distance = radius * float(torch.rand((), generator=rng, device="cpu"))
    return {name: tensor + (distance / length) * steps[name].to(tensor.device) for name, tensor in start.items()}
