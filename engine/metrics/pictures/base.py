"""The contract of picture metrics, which compare a guess with the original."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from torch import Tensor

from engine.metrics.base import Goal, Metric


class PictureMetric(Metric):
    """How close a guess is to the original picture."""

    goal: ClassVar[Goal] = "pictures"

    def with_deviations(self, std: Sequence[float]) -> Self:
        """The same metric for a data set whose pixels are divided by these deviations; most metrics ignore them."""
        del std
        return self

    @abstractmethod
    def measure(self, guess: Tensor, truth: Tensor) -> float:
        """One number for two pictures (channels, height, width) in [0, 1]; the guess is clipped to [0, 1] first."""

    def measure_path(self, path: Sequence[Tensor], truth: Tensor) -> float:
        """One number for all guesses of an attack, in their order; by default, that of the last guess."""
        return self.measure(path[-1], truth)
