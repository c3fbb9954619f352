"""The contract of score metrics, which compare the scores of a membership attack with who was a member."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from engine.errors import BadInput, refusal
from engine.metrics.base import Goal, Metric


class ScoreMetric(Metric):
    """How well scores tell members from other records."""

    goal: ClassVar[Goal] = "membership"

    @abstractmethod
    def measure(self, scores: Tensor, members: Tensor) -> float:
        """One number for scores (n,) and members (n,), which holds True where the record was in the training data."""

    def resolves(self, others: int) -> bool:
        """Whether so many other records are enough for this number."""
        del others
        return True


def checked(metric: str, scores: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """The scores of members and of the others, in double precision."""
    if scores.dim() != 1 or scores.shape != members.shape or members.dtype != torch.bool:
        raise refusal(f"{metric}: scores", "must be one number for each record", tuple(scores.shape))
    values = scores.detach().to("cpu", torch.float64)
    inside = members.cpu()
    if not bool(inside.any()) or bool(inside.all()):
        raise BadInput(f"{metric}: members: both members and other records are needed", "Add records of the other kind")
    if bool(values.isnan().any()):
        raise BadInput(f"{metric}: scores: every score must be a number", "The model diverged: lower the learning rate")
    return values[inside], values[~inside]
