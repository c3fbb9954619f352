"""The area under the ROC curve: how often a member has a higher score than another record."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from scipy.stats import t as student
from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.membership.base import ScoreMetric, checked


@METRICS.add("auc", title="AUC", source="Fawcett 2006; its interval: DeLong et al. 1988")
class Auc(ScoreMetric):
    """The chance that a member has a higher score than another record: 1 tells all apart, and 0.5 tells nothing."""

    better: ClassVar[Literal["higher", "lower"]] = "higher"

    def measure(self, scores: Tensor, members: Tensor) -> float:
        inside, outside = checked(self.name, scores, members)
        return float(placements(inside, outside).mean())

    def interval(self, scores: Tensor, members: Tensor) -> tuple[float, float]:
        """A 95 % interval by the variance of DeLong. It is widest where there are few records."""
        inside, outside = checked(self.name, scores, members)
        of_members = placements(inside, outside)
        of_others = 1 - placements(outside, inside)
        area = float(of_members.mean())
        variance = spread(of_members) + spread(of_others)
        fewest = min(len(inside), len(outside))
        # Student's quantile: the variance of a few records is itself uncertain. Where it is 0, three errors in n pairs
        # are still possible (rule of three).
        reach = float(student.ppf(0.975, max(1, fewest - 1))) * variance**0.5 if variance > 0 else 3 / fewest
        return max(0.0, area - reach), min(1.0, area + reach)


def placements(scores: Tensor, others: Tensor) -> Tensor:
    """For each score, the share of the others that it exceeds; an equal one counts half."""
    ordered = others.sort().values
    below = torch.searchsorted(ordered, scores, right=False)
    up_to = torch.searchsorted(ordered, scores, right=True)
    return (below + up_to).double() / (2 * len(others))


def spread(values: Tensor) -> float:
    """The variance of a mean."""
    return float(values.var()) / len(values) if len(values) > 1 else 0.25
