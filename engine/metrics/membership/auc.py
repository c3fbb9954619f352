"""The area under the ROC curve: how often a member has a higher score than another record."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from scipy.special import expit
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

    def interval(self, scores: Tensor, members: Tensor, classes: Tensor | None = None) -> tuple[float, float]:
        """A 95 % interval by the variance of DeLong, on the scale of log odds.

        `classes` are given where members and others were chosen to have equally many records of each class. What
        differs between classes is then no chance.
        """
        inside, outside = checked(self.name, scores, members)
        of_members = placements(inside, outside)
        of_others = 1 - placements(outside, inside)
        area = float(of_members.mean())
        if classes is None:
            classes = torch.zeros(len(scores))
        classes, members = classes.cpu(), members.cpu()
        variance = spread(of_members, classes[members]) + spread(of_others, classes[~members])
        fewest = min(len(inside), len(outside))
        if variance == 0 or not 0 < area < 1:  # three errors in n pairs are still possible (rule of three)
            return max(0.0, area - 3 / fewest), min(1.0, area + 3 / fewest)
        # Student's quantile: the variance of a few records is itself uncertain.
        freedom = max(1, fewest - len(classes.unique()))
        reach = float(student.ppf(0.975, freedom)) * variance**0.5 / (area * (1 - area))
        middle = math.log(area / (1 - area))
        return float(expit(middle - reach)), float(expit(middle + reach))


def placements(scores: Tensor, others: Tensor) -> Tensor:
    """For each score, the share of the others that it exceeds; an equal one counts half."""
    ordered = others.sort().values
    below = torch.searchsorted(ordered, scores, right=False)
    up_to = torch.searchsorted(ordered, scores, right=True)
    return (below + up_to).double() / (2 * len(others))


def spread(values: Tensor, classes: Tensor) -> float:
    """The variance of a mean, where the number of values of each class is given."""
    if len(values) == 1:
        return 0.25
    squares, freedom = 0.0, 0
    for label in classes.unique():
        own = values[classes == label]
        squares += float((own - own.mean()).square().sum())
        freedom += len(own) - 1
    if freedom == 0:  # one value of each class: they are treated as values of one class
        return float(values.var()) / len(values)
    return squares / freedom / len(values)
