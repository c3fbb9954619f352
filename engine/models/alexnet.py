"""AlexNet for small pictures: five convolutions and three linear layers."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar

from pydantic import Field
from torch import nn

from engine.models.base import MODELS, Dropout, Model, not_pictures

SMALLEST_SIDE = 16  # pixels: four halvings leave one
WIDTH_FACTORS = (1, 3, 6, 4, 4)  # channels of the five convolutions, in the proportions of the original AlexNet


@MODELS.add(
    "alexnet", title="AlexNet", source="Krizhevsky, Sutskever, Hinton 2012; sized for 32 x 32 as in FedCEO (ICML 2025)"
)
class Alexnet(Model):
    """Five 3 x 3 convolutions with group normalisation, then three linear layers, all with ReLU."""

    normalises: ClassVar[bool] = True
    width: int = Field(
        32,
        ge=1,
        le=128,
        title="width",
        description="Channels of the first convolution, and of each normalisation group.",
    )
    hidden: int = Field(512, ge=1, le=4096, title="hidden units", description="Width of the linear layers.")
    dropout: float = Field(
        0.0, ge=0, lt=1, title="dropout", description="Share of the values set to zero before each hidden linear layer."
    )

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, SMALLEST_SIDE)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number, factor in enumerate(WIDTH_FACTORS, start=1):
            out = factor * self.width
            layers[f"conv{number}"] = nn.Conv2d(channels, out, 3, stride=2 if number == 1 else 1, padding=1)
            layers[f"norm{number}"] = nn.GroupNorm(factor, out)
            if number in (1, 2, 5):
                layers[f"pool{number}"] = nn.MaxPool2d(2)  # before the ReLU: the same function, a quarter of the work
            layers[f"relu{number}"] = nn.ReLU()
            channels = out
        layers |= OrderedDict(
            flatten=nn.Flatten(),
            dropout1=Dropout(self.dropout),
            fc1=nn.Linear(channels * _final_side(height) * _final_side(width), self.hidden),
            relu6=nn.ReLU(),
            dropout2=Dropout(self.dropout),
            fc2=nn.Linear(self.hidden, self.hidden),
            relu7=nn.ReLU(),
            head=nn.Linear(self.hidden, classes),
        )
        return nn.Sequential(layers)


def _final_side(side: int) -> int:
    """The side after one stride and three poolings: 32 becomes 2, and 28 becomes 1."""
    return (side + 1) // 2 // 8
