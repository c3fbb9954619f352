"""The contract of a metric, which compares a guess with the truth.

Privacy: only metrics and the judge in `engine.leakage` hold a guess and the truth together. An attack that imported a
metric could compare its guesses with the truth and choose the best, so no attack may import one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from torch import Tensor

from engine.part import Part
from engine.registry import Shelf


class Metric(Part):
    """How close a guess is to the truth."""

    unit: ClassVar[str] = ""
    better: ClassVar[Literal["higher", "lower"]]  # the direction of a better reconstruction, that is of more leakage

    @classmethod
    def unavailable(cls) -> str:
        """Why this machine cannot compute the metric; empty if it can."""
        return ""

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


METRICS: Shelf[Metric] = Shelf("engine.metrics", "metric")
