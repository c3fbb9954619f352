"""LPIPS on AlexNet, whose convolutions ship with LeakLens."""

from __future__ import annotations

from torch import Tensor

from engine.metrics.base import METRICS, Metric
from engine.metrics.pictures import networks
from engine.metrics.pictures.pairing import paired


@METRICS.add("lpips", title="LPIPS (AlexNet)", source="Zhang et al. 2018, version 0.1 on AlexNet; small sides made 64")
class LpipsAlex(Metric):
    """Learned perceptual distance on AlexNet: 0 is the very picture, and what people find unlike it lies far.

    A side under 64 pixels is first enlarged to 64, bilinear; grey pictures are shown in three equal channels.
    """

    better = "lower"

    @classmethod
    def absent(cls) -> str:
        return str(networks.missing(networks.FEATURES, "LPIPS") or "")

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        return networks.distance(networks.lpips_alex(), self.name, *paired(self.name, guess, truth))
