"""What the panels of Try say of a side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.batch.view import ShownRun
from app.screens.try_it import panels
from app.screens.try_it.settings import TrySettings
from app.screens.try_it.sides import TrySide
from app.session import run_settings, services
from engine.events import Measured

pytestmark = pytest.mark.usefixtures("home", "resting")


@pytest.fixture(autouse=True)
def loaded() -> None:
    assert services.shared().ready(60)


def shown(run: str, status: str, accuracies: Sequence[float]) -> ShownRun:
    events = tuple(Measured(round, "accuracy", value) for round, value in enumerate(accuracies, start=1))
    return ShownRun(run, status, {}, events)


@pytest.fixture
def side() -> TrySide:
    """A side without results."""
    run = TrySettings.default().run
    return TrySide("A", run, run_settings.spec_of(run), (), (), (), ())


def test_a_run_under_way_is_compared_after_as_many_rounds(side: TrySide) -> None:
    """A reader saw 30.0 % (90.0 % without protection): round 2 of one against round 4 of the other."""
    under_way = shown(side.spec.id, "running", (0.2, 0.3))
    finished = shown("baseline", "finished", (0.5, 0.6, 0.8, 0.9))
    both = replace(side, runs=(under_way,), baselines=(finished,))
    assert panels.baseline_accuracy(both) == 0.6
    assert "60.0 % without protection" in panels._accuracy_line(both, several=False)


def test_a_baseline_with_fewer_rounds_is_not_compared(side: TrySide) -> None:
    finished = shown(side.spec.id, "finished", (0.2, 0.3, 0.4))
    under_way = shown("baseline", "running", (0.5, 0.6))
    assert panels.baseline_accuracy(replace(side, runs=(finished,), baselines=(under_way,))) is None
    assert panels.baseline_accuracy(replace(side, baselines=(under_way,))) is None
    ended = replace(under_way, status="finished")
    assert panels.baseline_accuracy(replace(side, baselines=(ended,))) == 0.6
    assert panels.baseline_accuracy(side) is None
