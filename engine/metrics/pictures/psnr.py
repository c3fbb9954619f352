"""The peak signal-to-noise ratio of pixels in [0, 1]."""

from __future__ import annotations

import math

from torch import Tensor

from engine.metrics.base import METRICS, Metric
from engine.metrics.pictures.pairing import paired

MOST = 160.0  # dB, an error of 1e-8 per pixel: JSON holds no infinity


@METRICS.add("psnr", title="PSNR", source="Geiping et al. 2020 and most others; peak 1, a picture at a time")
class Psnr(Metric):
    """Peak signal-to-noise ratio, -10 log10 of the mean squared error: 160 dB is the very picture, 0 the worst.

    Equal pictures would have infinitely many decibels: 160 is the most that is told.
    """

    unit = "dB"
    better = "higher"

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        error = float((guess - truth).square().mean())
        return min(MOST, 10 * math.log10(1 / error)) if error > 0 else MOST
