"""LPIPS on VGG16, for machines that have its weights."""

from __future__ import annotations

from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.pictures import networks
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired


@METRICS.add("lpips-vgg", title="LPIPS (VGG16)", source="Zhang et al. 2018, version 0.1 on VGG16; small sides made 64")
class LpipsVgg(PictureMetric):
    """Learned perceptual distance on VGG16, as some papers measure it: its numbers differ from those on AlexNet.

    The weights are torchvision's, from its cache on this machine. They are downloaded only with LEAKLENS_DOWNLOAD=1.
    """

    better = "lower"

    @classmethod
    def unavailable(cls) -> str:
        return str(networks.vgg16_missing() or "")

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        return networks.lpips_distance(networks.lpips_vgg(), self.name, guess, truth)
