"""The mean squared error of pixels in [0, 1]."""

from __future__ import annotations

from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired


@METRICS.add("mse", title="MSE", source="every paper on reconstruction; here always on pixels in [0, 1]")
class Mse(PictureMetric):
    """Mean squared error of pixels in [0, 1]: 0 means the same picture, 1 is the largest error possible."""

    better = "lower"

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        return float((guess - truth).square().mean())
