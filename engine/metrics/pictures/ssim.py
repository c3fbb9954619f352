"""Structural similarity, with the Gaussian window of its authors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from engine.errors import refusal
from engine.metrics.base import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired

WINDOW = 11  # pixels a side: 3.5 deviations of 1.5 pixels on either side of the middle


@METRICS.add("ssim", title="SSIM", source="Wang et al. 2004: Gaussian window of 11 x 11, deviation 1.5")
class Ssim(PictureMetric):
    """Structural similarity: 1 means the same picture, 0 no shared structure, below 0 like its negative.

    For colour pictures it is the mean over the channels.
    """

    better = "higher"

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        if min(truth.shape[1:]) < WINDOW:
            raise refusal(f"{self.name}: pictures", f"must have sides of {WINDOW} or more", tuple(truth.shape))
        from skimage import metrics

        structural_similarity: Any = metrics.structural_similarity
        similarity = structural_similarity(
            truth.numpy(),
            guess.numpy(),
            data_range=1.0,
            channel_axis=0,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
        return float(similarity)
