"""AlexNet for small pictures: five convolutions and three linear layers."""

from __future__ import annotations

from collections import OrderedDict

from pydantic import Field
from torch import nn

from engine.models.base import MODELS, Dropout, Model, not_pictures

LEAST = 16  # pixels a side: four halvings leave one
SHARES = (1, 3, 6, 4, 4)  # channels of the five convolutions: the proportions of the first AlexNet


@MODELS.add(
    "alexnet", title="AlexNet", source="Krizhevsky, Sutskever, Hinton 2012; sized for 32 x 32 as in FedCEO (ICML 2025)"
)
class Alexnet(Model):
    """Five 3 x 3 convolutions with group normalisation, then three linear layers, all with ReLU."""

    width: int = Field(
        32, ge=1, le=128, title="width", description="Channels of the first convolution, and of each normalised group."
    )
    hidden: int = Field(512, ge=1, le=4096, title="hidden units", description="Width of the linear layers.")
    dropout: float = Field(
        0.0, ge=0, lt=1, title="dropout", description="Share of numbers switched off before each hidden linear layer."
    )

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, LEAST)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        found: OrderedDict[str, nn.Module] = OrderedDict()
        for place, share in enumerate(SHARES, start=1):
            out = share * self.width
            found[f"conv{place}"] = nn.Conv2d(channels, out, 3, stride=2 if place == 1 else 1, padding=1)
            found[f"norm{place}"] = nn.GroupNorm(share, out)
            if place in (1, 2, 5):
                found[f"pool{place}"] = nn.MaxPool2d(2)  # before the ReLU: the same function, a quarter of the work
            found[f"relu{place}"] = nn.ReLU()
            channels = out
        found |= OrderedDict(
            flatten=nn.Flatten(),
            dropout1=Dropout(self.dropout),
            fc1=nn.Linear(channels * _left(height) * _left(width), self.hidden),
            relu6=nn.ReLU(),
            dropout2=Dropout(self.dropout),
            fc2=nn.Linear(self.hidden, self.hidden),
            relu7=nn.ReLU(),
            head=nn.Linear(self.hidden, classes),
        )
        return nn.Sequential(found)


def _left(side: int) -> int:
    """What one stride and three poolings leave of a side: 2 of 32, 1 of 28."""
    return (side + 1) // 2 // 8
