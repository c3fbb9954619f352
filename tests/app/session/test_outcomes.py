"""The finished runs from which a page estimates others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.session import outcomes, services
from engine.specs.run import RunSpec
from tests.app.makers import ROUNDS, RunMaker

TARGET = RunSpec(method="udp-fedavg", rounds=ROUNDS, seed=9).canonical()


@pytest.fixture(autouse=True)
def loaded(home: Path, resting: None) -> None:
    assert services.shared().ready(60)


def seeds(target: Mapping[str, Any] = TARGET) -> set[int]:
    """The seeds of the neighbours."""
    return {outcome.run.get("seed", 0) for outcome in outcomes.near(target)}


def test_only_finished_runs_count(ask: RunMaker) -> None:
    for seed, status in enumerate(("finished", "running", "cancelled", "failed", "interrupted")):
        ask(status, seed)
    assert seeds() == {0}


def test_a_run_with_other_settings_does_not_count(ask: RunMaker) -> None:
    ask("finished", 1)
    ask("finished", 2, lr=0.5)
    assert seeds() == {1}


def test_a_run_of_an_earlier_version_does_not_count(ask: RunMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("finished", 1)
    monkeypatch.setattr(services, "made_earlier", lambda spec: True)
    assert seeds() == set()


def test_a_run_that_the_visitor_may_not_see_does_not_count(ask: RunMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour whose spec names another visitor's picture would give away its accuracy."""
    hidden = ask("finished", 1)
    ask("finished", 2)
    monkeypatch.setattr(services, "may_see_all", lambda runs: [run for run in runs if run.id != hidden])
    assert seeds() == {2}
