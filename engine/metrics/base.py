"""What all metrics share: the goal of the attacks that they judge, a unit and a direction.

Privacy: only metrics and the judge in `engine.leakage` hold a guess and the truth together. An attack that imported a
metric could compare its guesses with the truth and choose the best, so no attack may import one.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

from engine.part import Part
from engine.registry import Shelf

Goal = Literal["pictures", "membership", "text"]  # the goals of `engine.attacks`: shelves do not import each other


class Metric(Part):
    """How much an attack learned, compared with the truth."""

    goal: ClassVar[Goal]
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["higher", "lower"]]  # the direction of a better attack, that is of more leakage

    @classmethod
    def unavailable(cls) -> str:
        """Why this machine cannot compute the metric; empty if it can."""
        return ""


METRICS: Shelf[Metric] = Shelf("engine.metrics", "metric")
M = TypeVar("M", bound=Metric)


def available(kind: type[M]) -> list[M]:
    """All metrics of this kind that this machine can compute."""
    return [part() for part in METRICS if issubclass(part, kind) and not part.unavailable()]
