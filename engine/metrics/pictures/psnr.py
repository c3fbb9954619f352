"""The peak signal-to-noise ratio of pixels in [0, 1]."""

from __future__ import annotations

import math

from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired

MAX_DB = 160.0  # an error of 1e-8 per pixel; equal pictures have infinite PSNR, and JSON holds no infinity


@METRICS.add("psnr", title="PSNR", source="Geiping et al. 2020 and most others; peak 1, a picture at a time")
class Psnr(PictureMetric):
    """Peak signal-to-noise ratio, -10 log10 of the mean squared error: 160 dB means the same picture, 0 is the worst.

    Equal pictures have an infinite PSNR. The metric returns at most 160.
    """

    unit = "dB"
    better = "higher"

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        error = float((guess - truth).square().mean())
        if error == 0:
            return MAX_DB
        return min(MAX_DB, 10 * math.log10(1 / error))
