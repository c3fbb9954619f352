"""The metrics of membership against counting by hand, and the width of their intervals."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.errors import BadInput
from engine.metrics import METRICS
from engine.metrics.membership.auc import Auc
from engine.metrics.membership.base import ScoreMetric
from engine.metrics.membership.tpr_at_fpr import POINTS, TprAtFpr, roc

NAMES = [part.name for part in METRICS if part.goal == "membership"]


def made(name: str) -> ScoreMetric:
    metric = METRICS.make(name)
    assert isinstance(metric, ScoreMetric)
    return metric


def halves(inside: list[float], outside: list[float]) -> tuple[Tensor, Tensor]:
    members = torch.tensor([True] * len(inside) + [False] * len(outside))
    return torch.tensor([*inside, *outside]), members


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12),
    st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12),
)
def test_the_area_counts_pairs_and_an_equal_one_counts_half(inside: list[float], outside: list[float]) -> None:
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in inside for b in outside]
    assert Auc().measure(*halves(inside, outside)) == pytest.approx(sum(pairs) / len(pairs))


def test_the_share_of_members_at_a_share_of_false_alarms() -> None:
    scores, members = halves([9.0, 5.0, 3.0, 1.0], [float(value) for value in range(10)])
    assert TprAtFpr(fpr=0.1).measure(scores, members) == 0.25  # one of ten others may exceed: the threshold is 8
    assert TprAtFpr(fpr=0.5).measure(scores, members) == 0.5
    assert TprAtFpr(fpr=0.01).measure(scores, members) == 0.0  # none may exceed: 9 is not above 9
    assert TprAtFpr(fpr=0.05).measure(*halves([11.0], [0.0] * 100)) == 1.0


def test_the_curve_has_few_points_and_never_falls() -> None:
    rng = torch.Generator().manual_seed(0)
    scores = torch.randn(5000, generator=rng)
    members = torch.rand(5000, generator=rng) < 0.5
    points = roc(scores + members.float(), members)
    assert len(points) <= POINTS and points[-1] == (1.0, 1.0)
    assert list(points) == sorted(points) and [tpr for _, tpr in points] == sorted(tpr for _, tpr in points)
    for fpr, tpr in points[:-1]:
        assert tpr == pytest.approx(TprAtFpr(fpr=fpr).measure(scores + members.float(), members))


@pytest.mark.parametrize(("distance", "area"), [(0.0, 0.5), (1.0, 0.7602), (2.9, 0.9799)])
@pytest.mark.parametrize("classes", [1, 5])
def test_the_interval_holds_the_truth_as_often_as_it_says(distance: float, area: float, classes: int) -> None:
    """Two normal laws this far apart, and classes whose scores differ by another amount."""
    rng = torch.Generator().manual_seed(1)
    members = torch.arange(160) < 80
    labels = torch.arange(160) % classes
    held, widths = 0, 0.0
    for _ in range(400):
        scores = torch.randn(160, generator=rng) + distance * members.float()
        low, high = Auc().interval(scores, members, labels)
        held += low <= area <= high
        widths += high - low
    assert 0.92 <= held / 400 <= 0.98
    assert widths / 400 < 0.2


def test_an_interval_is_narrow_where_the_scores_follow_the_class() -> None:
    """Each class has its own level, and 40 members and 40 others: only what differs within a class is chance."""
    rng = torch.Generator().manual_seed(2)
    members = torch.arange(80) < 40
    labels = torch.arange(80) % 8
    held, widths = 0, [0.0, 0.0]
    for _ in range(300):
        scores = 3.0 * labels + torch.randn(80, generator=rng)
        for place, classes in enumerate((labels, None)):
            low, high = Auc().interval(scores, members, classes)
            widths[place] += high - low
            held += place == 0 and low <= 0.5 <= high
    assert 0.92 <= held / 300 <= 0.99 and widths[0] < widths[1] / 2


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 5, 8])
def test_the_interval_of_a_few_clients_is_wide_enough_for_chance(count: int) -> None:
    """Every order of the scores is equally probable: 0.5 is outside in at most 5 % of them, and a little."""
    total = 2 * count
    outside = 0
    orders = list(combinations(range(total), count))
    for chosen in orders:
        scores = torch.arange(total).double()
        members = torch.zeros(total, dtype=torch.bool)
        members[list(chosen)] = True
        low, high = Auc().interval(scores, members)
        outside += not low <= 0.5 <= high
    assert outside / len(orders) < 0.07
    low, high = Auc().interval(torch.zeros(total), torch.arange(total) < count)
    assert low < 0.5 < high


def test_few_records_without_an_error_are_no_certainty() -> None:
    assert Auc().interval(*halves([2.0] * 10, [1.0] * 10)) == pytest.approx((0.7, 1.0))
    low, high = Auc().interval(*halves([1.0], [0.0]))
    assert low == 0 and high == 1


@pytest.mark.parametrize("name", NAMES)
def test_impossible_scores_are_refused(name: str) -> None:
    members = torch.tensor([True, False])
    with pytest.raises(BadInput, match="must be one number for each record"):
        made(name).measure(torch.zeros(3), members)
    with pytest.raises(BadInput, match="both members and other records are needed"):
        made(name).measure(torch.zeros(2), torch.tensor([True, True]))
    with pytest.raises(BadInput, match="every score must be a number"):
        made(name).measure(torch.tensor([1.0, torch.nan]), members)


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_declares_itself(name: str) -> None:
    part = METRICS[name]
    assert part.title and part.source and part.summary().endswith(".") and part.better == "higher"
    assert part.unavailable() == ""
