"""What every backend must do: run jobs, deliver events as they happen, resume from a checkpoint, cancel, and die well.

A backend for a cluster joins the list below. No screen and no command knows which one runs its jobs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.events import Cancelled, Failed, Round
from engine.jobs.backends.base import Backend
from engine.jobs.backends.local import LocalBackend, WorkerHandle
from engine.jobs.store import Store
from engine.jobs.supervisor import CRASHES, Supervisor
from tests.engine.jobs.backends.threads import ThreadBackend
from tests.engine.jobs.conftest import Supervise, wait_for_end, wait_until
from tests.engine.jobs.test_supervisor import events_of, matches_undisturbed_run, start_lines, wait_for_round

BACKENDS: dict[str, Callable[[], Backend]] = {"local": LocalBackend, "threads": ThreadBackend}
CANCEL_S = 2.0
SubmitRun = Callable[..., str]

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("backend", BACKENDS)]


def _has_started(starts: Path, times: int) -> bool:
    return len(start_lines(starts)) == times


def kill_workers(supervisor: Supervisor) -> None:
    """End the workers that run a job, as an outage does."""
    for worker in list(supervisor._jobs):
        if isinstance(worker, WorkerHandle):
            os.kill(worker.pid, signal.SIGKILL)
        else:
            worker.kill()


def test_a_job_is_run_and_the_next_one_too(
    backend: str, store: Store, submit_run: SubmitRun, supervise: Supervise
) -> None:
    supervise(backend=BACKENDS[backend]())
    for run in ("one", "two"):
        assert wait_for_end(store, submit_run(run)) == "finished"
        assert matches_undisturbed_run(store, run)
    assert store.payload("one", "exposure-3")["seen"].shape == (4,)


def test_events_are_stored_as_they_happen(
    backend: str, store: Store, submit_run: SubmitRun, supervise: Supervise, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    supervise(backend=BACKENDS[backend]())
    submit_run(act={"kind": "wait", "round": 5, "until": str(gate)})
    wait_for_round(store, 5)
    rounds = [event.round for event in events_of(store) if isinstance(event, Round)]
    assert store.status("one") == "running" and rounds == [1, 2, 3, 4, 5]
    gate.touch()
    assert wait_for_end(store, "one") == "finished"


def test_a_worker_that_dies_is_replaced_and_the_run_resumes_from_its_checkpoint(
    backend: str, store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    supervisor = supervise(backend=BACKENDS[backend]())
    submit_run(act={"kind": "wait", "round": 8, "until": str(gate)})
    wait_for_round(store, 8)
    kill_workers(supervisor)
    gate.touch()
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [line[2] for line in start_lines(starts)] == ["0", "6"]  # a checkpoint after every third round


@pytest.mark.parametrize("act", [{}, {"kind": "wait", "round": 3, "until": "never"}], ids=["polite", "stubborn"])
def test_a_cancel_takes_effect_within_two_seconds(
    backend: str, act: dict[str, Any], store: Store, submit_run: SubmitRun, supervise: Supervise, tmp_path: Path
) -> None:
    if act:
        act = {**act, "until": str(tmp_path / "never")}
    supervisor = supervise(backend=BACKENDS[backend]())
    submit_run(rounds=10**6, pause=0.001, act=act)
    wait_for_round(store, 3)
    began = time.monotonic()
    assert store.cancel("one") == "cancelled"
    wait_until(lambda: isinstance(events_of(store)[-1], Cancelled))
    assert time.monotonic() - began < CANCEL_S + 2  # and what a busy machine adds
    wait_until(lambda: supervisor._jobs == {})
    assert wait_for_end(store, submit_run("next")) == "finished"


def test_a_run_whose_workers_die_at_the_same_place_fails_with_the_reason(
    backend: str, store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, tmp_path: Path
) -> None:
    supervisor = supervise(backend=BACKENDS[backend]())
    submit_run(act={"kind": "wait", "round": 2, "until": str(tmp_path / "never")})
    for attempt in range(1, CRASHES + 1):
        wait_until(partial(_has_started, starts, attempt), "the start of a worker")
        kill_workers(supervisor)
    assert wait_for_end(store, "one") == "failed"
    last = events_of(store)[-1]
    assert isinstance(last, Failed) and f"stopped {CRASHES} times at the same place: it was ended" in last.reason
