"""Gradient matching: pictures are changed until a model learns from them what it learns from real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.compute.sgd import PLAIN_LAYOUT, loaded_module, seed_dropout
from engine.records import Samples, Weights, World

GRAPH = 50  # pictures of one graph: with a hundred, a step of a ConvNet takes three times as long as with fifty
PICTURE_MOMENTUM = 0.5
TINY = 1e-6  # a row without a gradient has no direction: its cosine counts as 0


@dataclass(frozen=True)
class GradientDistance:
    """The distance between two gradients: layer by layer the cosine of each row, and the square of the difference."""

    cosine: bool = True
    rows: str = "mean"  # how the rows of a layer are put together: mean or sum
    square: float = 0.0  # weight of the squared difference

    def distance(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
        total = first[0].new_zeros(())
        for mine, theirs in zip(first, second, strict=True):
            if self.cosine:
                total = total + self._directions(mine, theirs)
            if self.square:
                total = total + self.square * (mine - theirs).square().sum()
        return total

    def _directions(self, first: Tensor, second: Tensor) -> Tensor:
        """One minus the cosine for each output of a layer. A bias is a single row."""
        mine = first.flatten(1) if first.dim() > 1 else first.view(1, -1)
        theirs = second.flatten(1) if second.dim() > 1 else second.view(1, -1)
        lengths = mine.norm(dim=1) * theirs.norm(dim=1)
        apart: Tensor = 1 - (mine * theirs).sum(1) / (lengths + TINY)
        return apart.mean() if self.rows == "mean" else apart.sum()


@dataclass
class PlainModel:
    """A model with weights of its own, in the memory layout in which second derivatives are fast."""

    module: nn.Module
    names: tuple[str, ...]
    parameters: list[Tensor]

    @classmethod
    def of(cls, world: World, weights: Weights, dropout: torch.Generator) -> PlainModel:
        module, parameters = loaded_module(world, weights, PLAIN_LAYOUT)
        seed_dropout(module, dropout)
        return cls(module, tuple(name for name, _ in module.named_parameters()), parameters)

    @torch.no_grad()
    def move(self, gradients: Sequence[Tensor], lr: float) -> None:
        torch._foreach_add_(self.parameters, list(gradients), alpha=-lr)

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        for name, parameter in zip(self.names, self.parameters, strict=True):
            parameter.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in zip(self.names, self.parameters, strict=True)}

    def distance_to(self, weights: Weights) -> float:
        """The length of the way from these weights."""
        squares = [
            (parameter.detach() - weights[name]).double().square().sum()
            for name, parameter in zip(self.names, self.parameters, strict=True)
        ]
        return float(torch.stack(squares).sum().sqrt())

    def gradient(self, x: Tensor, y: Tensor, shares: Tensor | None = None) -> list[Tensor]:
        """The gradient of the mean loss; with `shares`, of the losses weighted by them."""
        shares = torch.full_like(y, 1 / max(1, len(y)), dtype=x.dtype) if shares is None else shares
        total = [torch.zeros_like(parameter) for parameter in self.parameters]
        for part in torch.arange(len(y), device=y.device).split(2 * GRAPH):
            losses = functional.cross_entropy(self.module(x[part]), y[part], reduction="none")
            torch._foreach_add_(total, list(torch.autograd.grad(losses @ shares[part], self.parameters)))
        return total

    @torch.no_grad()
    def loss(self, x: Tensor, y: Tensor) -> float:
        """The mean loss."""
        sums = [
            functional.cross_entropy(self.module(x_part), y_part, reduction="sum")
            for x_part, y_part in zip(x.split(500), y.split(500), strict=True)
        ]
        return float(torch.stack(sums).sum()) / len(y)


@dataclass
class MovingPictures:
    """Labelled pictures that move along a gradient, with momentum."""

    x: Tensor
    y: Tensor
    velocity: Tensor | None = None

    @property
    def samples(self) -> Samples:
        return Samples(self.x, self.y)

    def match(self, model: PlainModel, target: Sequence[Tensor], matching: GradientDistance, lr: float) -> None:
        """One step towards pictures whose gradient is the target."""
        self.move(matching_gradient(model, self.samples, target, matching), lr)

    @torch.no_grad()
    def move(self, gradient: Tensor, lr: float) -> None:
        velocity = gradient if self.velocity is None else gradient + PICTURE_MOMENTUM * self.velocity
        self.velocity = velocity
        self.x = self.x - lr * velocity


def matching_gradient(
    model: PlainModel, pictures: Samples, target: Sequence[Tensor], matching: GradientDistance
) -> Tensor:
    """The gradient, by picture, of the distance between the gradient of these pictures and the target.

    The gradient of all pictures is the sum of those of parts. Each part has a graph of its own, and the derivative of
    the distance passes through all of them.
    """
    parts: list[Tensor] = []
    gradients: list[tuple[Tensor, ...]] = []
    for x, y in zip(pictures.x.split(GRAPH), pictures.y.split(GRAPH), strict=True):
        part = x.detach().requires_grad_()
        loss = functional.cross_entropy(model.module(part), y, reduction="sum") / len(pictures.y)
        gradients.append(torch.autograd.grad(loss, model.parameters, create_graph=True))
        parts.append(part)
    if len(parts) == 1:
        return torch.autograd.grad(matching.distance(gradients[0], target), parts[0])[0]
    total = [torch.stack(tensors).sum(0).detach().requires_grad_() for tensors in zip(*gradients, strict=True)]
    slopes = torch.autograd.grad(matching.distance(total, target), total)
    moved = [
        torch.autograd.grad(list(gradient), part, grad_outputs=list(slopes))[0]
        for gradient, part in zip(gradients, parts, strict=True)
    ]
    return torch.cat(moved).detach()
