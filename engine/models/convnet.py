"""The convolutional network of data set distillation: normalised per picture, so it suits DP training."""

from __future__ import annotations

from collections import OrderedDict

from pydantic import Field
from torch import nn

from engine.models.base import MODELS, Model, not_pictures


@MODELS.add("convnet", title="ConvNet", source="Zhao et al. 2021 (dataset condensation); FedLAP-DP (2024)")
class Convnet(Model):
    """Three blocks of convolution, normalisation, ReLU and average pooling, then one linear layer."""

    width: int = Field(128, ge=1, le=512, title="width", description="Channels of every convolution.")

    def misfit(self, shape: tuple[int, ...]) -> str:
        return not_pictures(self, shape, least=8)

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = shape
        border = (1 + -height % 8 // 2, 1 + -width % 8 // 2)  # 3 for a side of 28, which so becomes 32
        blocks: OrderedDict[str, nn.Module] = OrderedDict()
        for place in (1, 2, 3):
            blocks[f"conv{place}"] = nn.Conv2d(channels, self.width, 3, padding=border if place == 1 else 1)
            blocks[f"norm{place}"] = nn.GroupNorm(self.width, self.width)
            blocks[f"relu{place}"] = nn.ReLU()
            blocks[f"pool{place}"] = nn.AvgPool2d(2)
            channels = self.width
        sides = [(side + 2 * extra - 2) // 8 for side, extra in zip((height, width), border, strict=True)]
        blocks["flatten"] = nn.Flatten()
        blocks["head"] = nn.Linear(self.width * sides[0] * sides[1], classes)
        return nn.Sequential(blocks)
