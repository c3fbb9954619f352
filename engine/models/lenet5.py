"""LeNet-5 in the width of FedCEO: two convolutions and three linear layers."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from engine.models.base import MODELS, Model, not_pictures


@MODELS.add(
    "lenet5", title="LeNet-5", source="LeCun et al. 1998; the wider variant of FedCEO (ICML 2025), for CIFAR-10"
)
class Lenet5(Model):
    """Two 5 x 5 convolutions with max pooling, then three linear layers, all with ReLU."""

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, smallest_side=16)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        return nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(channels, 32, 5),
                pool1=nn.MaxPool2d(2),  # before the ReLU: the same function, a quarter of the work
                relu1=nn.ReLU(),
                conv2=nn.Conv2d(32, 64, 5),
                pool2=nn.MaxPool2d(2),
                relu2=nn.ReLU(),
                flatten=nn.Flatten(),
                fc1=nn.Linear(64 * _final_side(height) * _final_side(width), 512),
                relu3=nn.ReLU(),
                fc2=nn.Linear(512, 512),
                relu4=nn.ReLU(),
                head=nn.Linear(512, classes),
            )
        )


def _final_side(side: int) -> int:
    """The side after two convolutions and two poolings: 32 becomes 5, and 28 becomes 4."""
    return ((side - 4) // 2 - 4) // 2
