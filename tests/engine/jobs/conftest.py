"""An empty store, runs to ask for, and one bounded wait."""

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

Ask = Callable[..., str]
Supervise = Callable[..., Supervisor]


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    store = Store()
    yield store
    store.close()


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """Where fake runs note each start."""
    return tmp_path / "starts"


@pytest.fixture
def ask(store: Store, starts: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Submit a fake run and say its id."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def ask(run: str = "one", rounds: int = 12, options: dict[str, Any] | None = None, **spec: Any) -> str:
        store.submit(run, {"id": run, "rounds": rounds, "starts": str(starts), **spec}, options)
        return run

    return ask


@pytest.fixture
def supervise(store: Store) -> Iterator[Supervise]:
    """Supervisors that end with the test."""
    begun: list[Supervisor] = []

    def supervise(workers: int = 1, **more: Any) -> Supervisor:
        begun.append(Supervisor(store, workers, **{"entry": FAKE, "preload": (), **more}).start())
        return begun[-1]

    yield supervise
    for supervisor in begun:
        supervisor.stop()


def until(true: Callable[[], Any], what: str = "") -> Any:
    """Wait, but not for ever."""
    last = time.monotonic() + PATIENCE_S
    while time.monotonic() < last:
        if answer := true():
            return answer
        time.sleep(0.01)
    raise AssertionError(f"waited {PATIENCE_S:g} s for {what or true}")


def ended(store: Store, run: str) -> str:
    """Wait for a run to end, and say how; pytest shows why one failed."""
    until(lambda: store.status(run) not in ("queued", "running"), f"the end of {run}")
    for _, event in store.events(run)[-1:]:
        print(event)
    return store.status(run)
