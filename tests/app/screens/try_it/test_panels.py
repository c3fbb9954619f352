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
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.verdict import COMES_BACK, NOT_RECOGNISED
from engine.specs.attack_grid import RequestedAttack
from tests.app.screens.leak.makers import finished_attack

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


def cell(*psnr: float) -> AttackCell:
    """A finished attack; one that still runs without a PSNR."""
    events = tuple(finished_attack("attack", psnr)) if psnr else ()
    status = "finished" if psnr else "running"
    return collect_cell(RequestedAttack("run", "map", None), AttackEvents(status, events))


def test_the_verdict_of_a_side_is_that_of_its_own_attacks(side: TrySide) -> None:
    hidden = replace(side, cells=(cell(10.0),), baseline_cells=(cell(30.0),))
    assert panels.result_of(hidden, {}, "server").verdict == NOT_RECOGNISED
    leaking = replace(side, cells=(cell(10.0), cell(30.0)), baseline_cells=(cell(10.0),))
    assert panels.result_of(leaking, {}, "server").verdict == COMES_BACK
    assert panels.result_of(replace(side, cells=(cell(30.0), cell())), {}, "server").verdict is None


def test_attacks_fail_only_where_all_have_ended_and_none_leaks(side: TrySide) -> None:
    assert panels._failed(replace(side, cells=(cell(10.0), cell(12.0))))
    assert not panels._failed(replace(side, cells=(cell(10.0), cell(30.0))))
    assert not panels._failed(replace(side, cells=(cell(10.0), cell())))
    assert not panels._failed(side)
