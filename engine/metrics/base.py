"""The contract of a metric: the only place where a guess and the truth are held together."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from torch import Tensor

from engine.part import Part
from engine.registry import Shelf


class Metric(Part):
    """How near a guess is to the truth."""

    unit: ClassVar[str] = ""
    better: ClassVar[Literal["higher", "lower"]]  # which end means a better reconstruction, that is more leakage

    @abstractmethod
    def measure(self, guess: Tensor, truth: Tensor) -> float:
        """One number for two pictures (channels, height, width) in [0, 1]."""


METRICS: Shelf[Metric] = Shelf("engine.metrics", "metric")
