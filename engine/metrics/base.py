"""The contract of a metric: the only place where a guess and the truth are held together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from torch import Tensor

from engine.part import Part
from engine.registry import Shelf


class Metric(Part):
    """How near a guess is to the truth."""

    unit: ClassVar[str] = ""
    better: ClassVar[Literal["higher", "lower"]]  # which end means a better reconstruction, that is more leakage

    @classmethod
    def absent(cls) -> str:
        """Why this metric cannot be had on this machine, empty if it can."""
        return ""

    def fitted(self, std: Sequence[float]) -> Self:
        """The same metric for a data set whose pixels are divided by these deviations; most do not care."""
        del std
        return self

    @abstractmethod
    def measure(self, guess: Tensor, truth: Tensor) -> float:
        """One number for two pictures (channels, height, width) in [0, 1]; the guess is clipped to it first."""

    def over(self, path: Sequence[Tensor], truth: Tensor) -> float:
        """One number for all the guesses of an attack, in their order; by default that of the last."""
        return self.measure(path[-1], truth)


METRICS: Shelf[Metric] = Shelf("engine.metrics", "metric")
