"""The share of members that are found at a small share of false alarms, and the whole ROC curve."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.membership.base import ScoreMetric, checked

POINTS = 60  # of a curve at most: it is drawn over a logarithmic axis


@METRICS.add("tpr-at-fpr", title="TPR at a low FPR", source="Carlini et al. 2022 (arXiv:2112.03570)")
class TprAtFpr(ScoreMetric):
    """The share of members above the threshold that gives this share of false alarms: what an accuser can prove."""

    better: ClassVar[Literal["higher", "lower"]] = "higher"

    fpr: float = Field(
        0.01, gt=0, lt=1, title="FPR", description="The share of other records that are called members by mistake."
    )

    def measure(self, scores: Tensor, members: Tensor) -> float:
        inside, outside = checked(self.name, scores, members)
        return found_at(inside, outside, self.fpr)

    def resolves(self, others: int) -> bool:
        return self.fpr * others >= 1


def found_at(inside: Tensor, outside: Tensor, fpr: float) -> float:
    """The share of members strictly above the threshold that at most this share of the others exceeds."""
    allowed = math.floor(fpr * len(outside) + 1e-9)
    threshold = outside.sort(descending=True).values[min(allowed, len(outside) - 1)]
    return float((inside > threshold).double().mean())


def roc(scores: Tensor, members: Tensor) -> tuple[tuple[float, float], ...]:
    """The ROC curve as at most 60 points (FPR, TPR), evenly spaced over the logarithm of the FPR."""
    inside, outside = checked("roc", scores, members)
    count = len(outside)
    ranks = torch.logspace(0, math.log10(count), POINTS - 1).round().long().unique().tolist()
    points = [(rank / count, found_at(inside, outside, rank / count)) for rank in ranks if rank < count]
    return (*points, (1.0, 1.0))
