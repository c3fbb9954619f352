"""The small network with sigmoids on which gradient inversion was first demonstrated."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import torch
from pydantic import Field
from torch import nn

from engine.models.base import MODELS, SIGMOID_NOISE_REGION, Model, not_pictures


@MODELS.add("lenet-sigmoid", title="LeNet with sigmoids", source="Zhu et al. 2019, Deep Leakage from Gradients")
class LenetSigmoid(Model):
    """Three 5 x 5 convolutions and one linear layer, smooth everywhere: the easiest target for gradient inversion."""

    init: Literal["default", "uniform"] = Field(
        "default",
        title="first weights",
        description="`uniform` draws each weight between -0.5 and 0.5: large weights, as in the DLG paper.",
    )

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, smallest_side=4)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(channels, 12, 5, stride=2, padding=2),
                sigmoid1=nn.Sigmoid(),
                conv2=nn.Conv2d(12, 12, 5, stride=2, padding=2),
                sigmoid2=nn.Sigmoid(),
                conv3=nn.Conv2d(12, 12, 5, padding=2),
                sigmoid3=nn.Sigmoid(),
                flatten=nn.Flatten(),
                head=nn.Linear(12 * -(-height // 4) * -(-width // 4), classes),
            )
        )

    def noise_region(self) -> tuple[float, float]:
        return SIGMOID_NOISE_REGION

    def fill(self, layer: nn.Module, rng: torch.Generator) -> None:
        if self.init == "default":
            return super().fill(layer, rng)
        for parameter in layer.parameters(recurse=False):
            parameter.uniform_(-0.5, 0.5, generator=rng)
