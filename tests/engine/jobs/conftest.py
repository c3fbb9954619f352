"""An empty store, a fixture that submits fake runs, supervisors that end with the test, and one bounded wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.environment import ROOT
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from tests.engine.jobs.serve import FAKE

PATIENCE_S = 30.0

SubmitRun = Callable[..., str]
Supervise = Callable[..., Supervisor]


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    store = Store()
    yield store
    store.close()


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """The file in which fake runs note each start."""
    return tmp_path / "starts"


@pytest.fixture
def submit_run(store: Store, starts: Path, monkeypatch: pytest.MonkeyPatch) -> SubmitRun:
    """Submit a fake run and return its id."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def submit_run(run: str = "one", rounds: int = 12, options: dict[str, Any] | None = None, **spec: Any) -> str:
        store.submit(run, {"id": run, "rounds": rounds, "starts": str(starts), **spec}, options)
        return run

    return submit_run


@pytest.fixture
def supervise(store: Store) -> Iterator[Supervise]:
    """Start supervisors that end with the test."""
    supervisors: list[Supervisor] = []

    def supervise(workers: int = 1, **options: Any) -> Supervisor:
        supervisors.append(Supervisor(store, workers, **{"entry": FAKE, "preload": (), **options}).start())
        return supervisors[-1]

    yield supervise
    for supervisor in supervisors:
        supervisor.stop()


def wait_until(condition: Callable[[], Any], description: str = "") -> Any:
    """Wait until the condition is true and return its value. Fail after half a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {PATIENCE_S:g} s for {description or condition}")


def wait_for_end(store: Store, run: str) -> str:
    """Wait until a run ends, and return its status. The last event is printed, so pytest shows why a run failed."""
    wait_until(lambda: store.status(run) not in ("queued", "running"), f"the end of {run}")
    for _, event in store.events(run)[-1:]:
        print(event)
    return store.status(run)
