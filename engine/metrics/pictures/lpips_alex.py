"""LPIPS on AlexNet, whose convolutions are part of LeakLens."""

from __future__ import annotations

from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.pictures import networks
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired


@METRICS.add("lpips", title="LPIPS (AlexNet)", source="Zhang et al. 2018, version 0.1 on AlexNet; small sides made 64")
class LpipsAlex(PictureMetric):
    """Learned perceptual distance on AlexNet: 0 means the same picture; the less alike people find two, the larger.

    A side under 64 pixels is enlarged to 64 first, bilinear. A grey picture fills three equal channels.
    """

    better = "lower"

    @classmethod
    def unavailable(cls) -> str:
        return str(networks.unreadable_asset(networks.FEATURES, "LPIPS") or "")

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        return networks.lpips_distance(networks.lpips_alex(), self.name, guess, truth)
