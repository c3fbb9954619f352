"""LeNet-5 in the width FedCEO uses: two convolutions and three linear layers."""

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
        return not_pictures(self, shape, least=16)

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
                fc1=nn.Linear(64 * _left(height) * _left(width), 512),
                relu3=nn.ReLU(),
                fc2=nn.Linear(512, 512),
                relu4=nn.ReLU(),
                head=nn.Linear(512, classes),
            )
        )


def _left(side: int) -> int:
    """What two convolutions and two poolings leave of a side: 5 of 32, 4 of 28."""
    return ((side - 4) // 2 - 4) // 2
