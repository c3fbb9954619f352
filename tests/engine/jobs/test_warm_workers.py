"""Instant attacks that were requested together run on the warm worker: a cold one imports for seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.jobs import leases
from engine.jobs import supervisor as supervisor_module
from engine.jobs.store import Store
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end, wait_until
from tests.engine.jobs.test_supervisor import start_lines

SEARCH = {"name": "map", "iterations": 9}
INSTANT = {"name": "analytic"}


@pytest.fixture(autouse=True)
def one_warm_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "WARM_UP_PAUSE_S", 600.0)


@pytest.mark.slow
def test_instant_attacks_wait_for_the_warm_worker(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "INSTANT_S", 600.0)
    supervisor = supervise(2)
    wait_until(lambda: supervisor.warm)
    (warm,) = supervisor._handles
    for number in range(4):
        submit_run(f"attack-{number}", attack=INSTANT, pause=0.01)
    for number in range(4):
        assert wait_for_end(store, f"attack-{number}") == "finished"
    assert {int(line[1]) for line in start_lines(starts)} == {warm.pid}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "seconds"), [(SEARCH, 600.0), (INSTANT, 0.0)])
def test_a_slow_attack_keeps_no_other_waiting(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch,
    first: dict[str, object], seconds: float,
) -> None:  # fmt: skip
    monkeypatch.setattr(leases, "INSTANT_S", seconds)
    supervisor = supervise(2)
    wait_until(lambda: supervisor.warm)
    submit_run("slow", attack=first, act={"kind": "wait", "round": 1, "until": str(starts.parent / "go")})
    wait_until(lambda: store.status("slow") == "running")
    submit_run("other", attack=INSTANT)
    assert wait_for_end(store, "other") == "finished" and store.status("slow") == "running"
    (starts.parent / "go").touch()
    assert wait_for_end(store, "slow") == "finished"
