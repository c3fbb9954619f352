"""The mean squared error as FedEM prints it: of pixels divided by the deviation of their channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from pydantic import Field, field_validator
from torch import Tensor

from engine.errors import refusal
from engine.metrics.base import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired


@METRICS.add("mse-normalised", title="MSE, normalised pixels", source="FedEM (under review): its MSE, not its PSNR")
class MseNormalised(PictureMetric):
    """Mean squared error of normalised pixels, as some papers print it: compare it with their numbers only.

    Normalised pixels are divided by the deviation of their channel over the data set. The largest error is therefore
    1 / std² and not 1, so a PSNR cannot be computed from it.
    """

    better = "lower"

    std: tuple[float, ...] = Field(
        (1.0,), title="deviations", description="Pixels are divided by these: one per channel, or one for all."
    )

    @field_validator("std")
    @classmethod
    def _above_zero(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or min(value) <= 0:
            raise refusal(f"{cls.name}: std", "must be numbers above 0, one per channel", value)
        return value

    def with_deviations(self, std: Sequence[float]) -> Self:
        return self.with_(std=tuple(map(float, std)))

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        if len(self.std) not in (1, len(truth)):
            raise refusal(f"{self.name}: std", f"must be 1 number or one for each of {len(truth)} channels", self.std)
        error = (guess - truth) / torch.tensor(self.std, dtype=truth.dtype).view(-1, 1, 1)
        return float(error.square().mean())
