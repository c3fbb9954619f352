"""What every model declares: layers, first weights, last layer; and the Dropout that is handed its generator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from engine.errors import BadInput, LeakLensError
from engine.part import Part, Problem
from engine.registry import Shelf

REMEDY = "Choose another model or another data set"


class Dropout(nn.Module):
    """Sets a share p of its input to zero while training; chance comes only from the `generator` it was handed."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if self.generator is None:
            raise LeakLensError(
                "dropout: must be handed a generator before training, got none", "Set its attribute `generator`"
            )
        return x * kept(x.shape, self.p, self.generator).to(x)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def kept(shape: Sequence[int], p: float, rng: torch.Generator) -> Tensor:
    """One dropout mask: 0 with chance p, else 1 / (1 - p)."""
    drawn = torch.rand(tuple(shape), generator=rng, device=rng.device, dtype=torch.float32)
    return (drawn >= p).float().div_(1 - p)


class Model(Part):
    """A network that names what it reads, built for any shape it can read: (channels, height, width) or (words,)."""

    stackable: ClassVar[bool] = False  # whether `stacked` exists

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """The architecture; what its weights are at first does not matter here."""
        raise NotImplementedError

    def misfit(self, shape: tuple[int, ...]) -> str:
        """Why this model cannot read such an input, empty if it can."""
        del shape
        return ""

    def example(self, shape: tuple[int, ...], many: int, rng: torch.Generator) -> Tensor:
        """Inputs (many, ...) of the kind it reads, drawn by chance: to time it, or to count what it puts out."""
        return torch.rand(many, *shape, generator=rng)

    def fill(self, layer: nn.Module, rng: torch.Generator) -> None:
        """First weights of one layer: torch's own law, uniform within 1 / sqrt(inputs), drawn from `rng`."""
        if isinstance(layer, nn.GroupNorm):
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
            return
        weight = layer.get_parameter("weight")
        bound = 1 / math.sqrt(weight[0].numel())
        for parameter in layer.parameters(recurse=False):
            parameter.uniform_(-bound, bound, generator=rng)

    def build(self, shape: tuple[int, ...], classes: int, rng: torch.Generator) -> nn.Module:
        """The module with its first weights; equal generators give equal weights, and torch's own generator rests."""
        if reason := self.misfit(shape):
            raise BadInput(reason, REMEDY)
        with torch.device("meta"):
            module = self.layers(shape, classes)
        module = module.to_empty(device=rng.device)
        with torch.no_grad():
            for layer in module.modules():
                if next(layer.parameters(recurse=False), None) is not None:
                    self.fill(layer, rng)
        return module

    def head(self, module: nn.Module) -> tuple[str, ...]:
        """The names of the parameters of the last layer."""
        last = [
            name for name, layer in module.named_modules() if next(layer.parameters(recurse=False), None) is not None
        ][-1]
        return tuple(f"{last}.{name}" for name, _ in module.get_submodule(last).named_parameters())

    def stacked(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        y: Tensor,
        rngs: Sequence[torch.Generator],
        rows: Sequence[int],
    ) -> dict[str, Tensor]:
        """The gradients (clients, ...) of each client's mean loss, many clients at once.

        weights (clients, ...), x (clients, batch, ...), y (clients, batch). A client's pictures are its first `rows`,
        what follows is padding; its generator gives the dropout masks that the module would draw from it.
        """
        raise LeakLensError(f"{self.called()}: clients cannot be stacked in this model")

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        reason = self.misfit(spec.dataset.shape)
        return (Problem(reason, REMEDY),) if reason else ()


def not_pictures(model: Model, shape: tuple[int, ...], least: int) -> str:
    """Why a model of pictures cannot read this shape, empty if it can."""
    if len(shape) == 1:
        return f"{model.called()}: needs pictures, got sentences of {shape[0]} words"
    if len(shape) != 3:
        return f"{model.called()}: needs pictures (channels, height, width), got {shape}"
    if min(shape[1:]) < least:
        return f"{model.called()}: needs pictures of at least {least} x {least}, got {shape[1]} x {shape[2]}"
    return ""


MODELS: Shelf[Model] = Shelf("engine.models", "model")
