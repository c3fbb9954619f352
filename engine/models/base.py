"""The base class of all models, and a Dropout layer with its own random generator."""

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
NOISE_REGION = (0.1, 3.2)  # of models with ReLU
SIGMOID_NOISE_REGION = (0.001, 0.032)  # sigmoids pass so little of a picture on that less noise hides it


class Dropout(nn.Module):
    """Set a share p of the input to zero during training. All randomness comes from the attribute `generator`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if self.generator is None:
            raise LeakLensError(
                "dropout: must have a generator before training, got none", "Set its attribute `generator`"
            )
        return x * draw_dropout_mask(x.shape, self.p, self.generator).to(x)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def draw_dropout_mask(shape: Sequence[int], p: float, rng: torch.Generator) -> Tensor:
    """One dropout mask: 0 with probability p, else 1 / (1 - p)."""
    drawn = torch.rand(tuple(shape), generator=rng, device=rng.device, dtype=torch.float32)
    return (drawn >= p).float().div_(1 - p)


class Model(Part):
    """A network that can be built for every input shape that it accepts: (channels, height, width) or (words,)."""

    stackable: ClassVar[bool] = False  # True if the model implements `stacked`
    normalises: ClassVar[bool] = False  # True if a layer normalises activations, so brightness and contrast are lost

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """The architecture. `build` replaces its weights."""
        raise NotImplementedError

    def misfit(self, shape: tuple[int, ...]) -> str:
        """Why this model cannot read inputs of this shape; empty if it can."""
        del shape
        return ""

    def example(self, shape: tuple[int, ...], count: int, rng: torch.Generator) -> Tensor:
        """Random inputs (count, ...) of the kind that the model reads, for measuring time and outputs."""
        return torch.rand(count, *shape, generator=rng)

    def fill(self, layer: nn.Module, rng: torch.Generator) -> None:
        """Draw the initial weights of one layer from `rng`: uniform within 1 / sqrt(inputs), as torch does."""
        if isinstance(layer, nn.GroupNorm):
            nn.init.ones_(layer.weight)
            nn.init.zeros_(layer.bias)
            return
        weight = layer.get_parameter("weight")
        bound = 1 / math.sqrt(weight[0].numel())
        for parameter in layer.parameters(recurse=False):
            parameter.uniform_(-bound, bound, generator=rng)

    def build(self, shape: tuple[int, ...], classes: int, rng: torch.Generator) -> nn.Module:
        """The module with initial weights. Equal generators give equal weights; the global generator is unused."""
        reason = self.misfit(shape)
        if reason:
            raise BadInput(reason, REMEDY)
        with torch.device("meta"):
            module = self.layers(shape, classes)
        module = module.to_empty(device=rng.device)
        with torch.no_grad():
            for layer in module.modules():
                if _has_own_parameters(layer):
                    self.fill(layer, rng)
        return module

    def head(self, module: nn.Module) -> tuple[str, ...]:
        """The names of the parameters of the last layer."""
        layers = [name for name, layer in module.named_modules() if _has_own_parameters(layer)]
        last = layers[-1]
        return tuple(f"{last}.{name}" for name, _ in module.get_submodule(last).named_parameters())

    def stacked(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        y: Tensor,
        rngs: Sequence[torch.Generator],
        rows: Sequence[int],
    ) -> dict[str, Tensor]:
        """The gradients (clients, ...) of each client's mean loss, for many clients at once.

        weights (clients, ...), x (clients, batch, ...), y (clients, batch). The pictures of a client are its first
        `rows`; the rest is padding. Its generator gives the same dropout masks that the module would draw.
        """
        raise LeakLensError(f"{self.label()}: clients cannot be stacked in this model")

    @property
    def wide(self) -> bool:
        """Whether the normalised layers are so wide that an upload determines the fine detail of a picture."""
        return False

    def noise_region(self) -> tuple[float, float]:
        """Where noise hides pictures: the ends of noise / signal · √(pixels / parameters), for one upload.

        Measured with the models here, by `python3 -m engine bench cliff`. The numbers are in assets/docs/limits.md. A
        model that was not measured has the region of models with ReLU. That one starts later, so it never forecasts
        too early that a picture is hidden.
        """
        return NOISE_REGION

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        reason = self.misfit(spec.dataset.shape)
        return (Problem(reason, REMEDY),) if reason else ()


def not_pictures(model: Model, shape: tuple[int, ...], smallest_side: int) -> str:
    """Why a model for pictures cannot read inputs of this shape; empty if it can."""
    if len(shape) == 1:
        return f"{model.label()}: needs pictures, got sentences of {shape[0]} words"
    if len(shape) != 3:
        return f"{model.label()}: needs pictures (channels, height, width), got {shape}"
    if min(shape[1:]) < smallest_side:
        size = f"{smallest_side} x {smallest_side}"
        return f"{model.label()}: needs pictures of at least {size}, got {shape[1]} x {shape[2]}"
    return ""


def _has_own_parameters(layer: nn.Module) -> bool:
    return next(layer.parameters(recurse=False), None) is not None


MODELS: Shelf[Model] = Shelf("engine.models", "model")
