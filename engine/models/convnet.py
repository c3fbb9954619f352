"""The convolutional network of data set distillation. It normalises each picture alone, as DP training requires."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar

from pydantic import Field
from torch import nn

from engine.models.base import MODELS, Model, not_pictures

WIDE = 128  # channels; measured with 16 to 96 and with 128 and 256


@MODELS.add("convnet", title="ConvNet", source="Zhao et al. 2021 (dataset condensation); FedLAP-DP (2024)")
class Convnet(Model):
    """Three blocks of convolution, normalisation, ReLU and average pooling, then one linear layer."""

    normalises: ClassVar[bool] = True
    width: int = Field(128, ge=1, le=512, title="width", description="Channels of every convolution.")

    @property
    def wide(self) -> bool:
        return self.width >= WIDE

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, smallest_side=8)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        padding = (1 + -height % 8 // 2, 1 + -width % 8 // 2)  # 3 for a side of 28, which becomes 32
        blocks: OrderedDict[str, nn.Module] = OrderedDict()
        for number in (1, 2, 3):
            blocks[f"conv{number}"] = nn.Conv2d(channels, self.width, 3, padding=padding if number == 1 else 1)
            blocks[f"norm{number}"] = nn.GroupNorm(self.width, self.width)
            blocks[f"relu{number}"] = nn.ReLU()
            blocks[f"pool{number}"] = nn.AvgPool2d(2)
            channels = self.width
        final_height = (height + 2 * padding[0] - 2) // 8
        final_width = (width + 2 * padding[1] - 2) // 8
        blocks["flatten"] = nn.Flatten()
        blocks["head"] = nn.Linear(self.width * final_height * final_width, classes)
        return nn.Sequential(blocks)
