"""Trouble: a lost lease, a full disk, a stopped process. The supervisor survives, and the run has its reason."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any

import pytest

from engine.errors import HomeFull
from engine.events import Event, Failed, Round
from engine.jobs.leases import Lease
from engine.jobs.process_id import start_time
from engine.jobs.store import Store
from engine.jobs.supervisor import TICK_S
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end, wait_until
from tests.engine.jobs.test_database import open_raw
from tests.engine.jobs.test_store import CURRENT
from tests.engine.jobs.test_supervisor import (
    events_of,
    last_worker_pid,
    matches_undisturbed_run,
    start_lines,
    wait_for_round,
)

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_a_stopped_supervisor_leaves_an_interrupted_run_that_resumes_later(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervisor = supervise()
    submit_run(rounds=40, pause=0.005)
    wait_for_round(store, 5)
    supervisor.stop()
    assert store.status("one") == "interrupted"
    assert start_time(last_worker_pid(starts)) == ""
    assert supervisor._handles == []
    supervisor.stop()
    supervisor.start()
    time.sleep(3 * TICK_S)
    assert store.status("one") == "interrupted"  # it was not submitted again
    submit_run(rounds=40, pause=0.005)
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert int(start_lines(starts)[1][2]) >= 3


def test_a_supervisor_that_loses_the_lease_ends_its_worker_and_drops_the_run(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, home: Path
) -> None:
    supervisor = supervise(2)
    submit_run(rounds=10**6, pause=0.001)
    wait_for_round(store, 4)
    worker = last_worker_pid(starts)
    open_raw(home).execute("UPDATE leases SET token = 'of another'")
    wait_until(lambda: start_time(worker) == "")
    wait_until(lambda: supervisor._jobs == {})
    assert not isinstance(events_of(store)[-1], Failed)
    submit_run("two")
    assert wait_for_end(store, "two") == "finished"


def test_a_full_home_fails_the_run_with_its_reason(
    store: Store, submit_run: SubmitRun, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_run()
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
    supervise()
    assert wait_for_end(store, "one") == "failed"
    end = events_of(store)[-1]
    assert isinstance(end, Failed)
    assert "of 1 B allowed" in end.reason
    assert "Delete runs" in end.remedy


@pytest.mark.slow
def test_a_store_that_cannot_write_fails_the_run_and_not_the_supervisor(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = store.append
    full = [True]

    def refuse(lease: Any, events: Any) -> None:
        if full and any(isinstance(event, Round) and event.round >= 5 for event in events):
            raise HomeFull("home: no space is left", "Delete runs")
        append(lease, events)

    monkeypatch.setattr(store, "append", refuse)
    supervisor = supervise()
    submit_run(pause=0.01)
    assert wait_for_end(store, "one") == "failed"
    assert events_of(store)[-1] == Failed("home: no space is left", "Delete runs")
    assert isinstance(supervisor.trouble, HomeFull)
    assert start_time(last_worker_pid(starts)) == ""
    full.clear()
    submit_run(pause=0.01)
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert supervisor.trouble is None


@pytest.mark.slow
def test_a_supervisor_survives_an_unexpected_error(
    store: Store, submit_run: SubmitRun, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = store.take
    errors = [OSError(errno.EMFILE, "Too many open files")]

    def fail_once(*args: Any) -> Any:
        if errors:
            raise errors.pop()
        return take(*args)

    monkeypatch.setattr(store, "take", fail_once)
    supervise()
    assert wait_for_end(store, submit_run()) == "finished"


# --- a disk that fills during a run --------------------------------------------------------------------------


FULL = HomeFull("home: no space is left", "Delete runs")


@pytest.fixture
def disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A disk that is full from round 5 on. Then nothing can be written, not even the end of the run."""
    append = store.append
    renew = store.renew
    state = {"fills": True, "full": False}

    def refuse(lease: Lease, events: list[Event]) -> None:
        late = any(isinstance(event, Round) and event.round >= 5 for event in events)
        state["full"] |= state["fills"] and late
        if state["full"]:
            raise FULL
        append(lease, events)

    monkeypatch.setattr(store, "append", refuse)
    monkeypatch.setattr(store, "renew", lambda lease: refuse(lease, []) if state["full"] else renew(lease))
    return state


def test_a_full_disk_interrupts_a_run_at_once_and_the_reason_is_written_later(
    store: Store, submit_run: SubmitRun, supervise: Supervise, disk: dict[str, bool], starts: Path
) -> None:
    supervisor = supervise()
    submit_run(pause=0.005)
    wait_for_round(store, 1)
    began = time.monotonic()
    wait_until(lambda: store.status("one") == "interrupted")
    assert time.monotonic() - began < 10  # much less than the grace time of a lease
    wait_until(lambda: not supervisor.working)
    time.sleep(3 * TICK_S)
    assert supervisor.trouble is FULL
    disk.update(fills=False, full=False)
    wait_until(lambda: store.status("one") == "failed")
    assert events_of(store)[-1] == Failed("home: no space is left", "Delete runs")
    wait_until(lambda: supervisor.trouble is None)
    submit_run(pause=0.005)
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)


def test_a_run_lost_to_a_full_disk_can_be_submitted_before_its_reason_is_written(
    store: Store,
    submit_run: SubmitRun,
    supervise: Supervise,
    disk: dict[str, bool],
    starts: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = supervise()
    submit_run(pause=0.005)
    wait_until(lambda: store.status("one") == "interrupted")
    submit_run(pause=0.005)
    wait_until(lambda: len(start_lines(starts)) == 2)  # taken again, and lost again
    wait_until(lambda: store.status("one") == "interrupted")
    disk.update(fills=False, full=False)
    wait_until(lambda: store.status("one") == "failed")
    assert [type(event) for event in events_of(store)].count(Failed) == 1
    wait_until(lambda: supervisor.trouble is None)


def test_a_lost_run_whose_supervisor_stops_is_interrupted_and_the_trouble_stays(
    store: Store, submit_run: SubmitRun, supervise: Supervise, disk: dict[str, bool]
) -> None:
    supervisor = supervise()
    submit_run(pause=0.005)
    wait_until(lambda: store.status("one") == "interrupted")
    supervisor.stop()
    assert supervisor.trouble is FULL
    assert store.status("one") == "interrupted"


def test_trouble_that_ended_no_run_clears_by_itself(
    store: Store, submit_run: SubmitRun, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete_deletions = store.complete_deletions
    errors = [FULL]

    def fail_once() -> None:
        if errors:
            raise errors.pop()
        complete_deletions()

    monkeypatch.setattr(store, "complete_deletions", fail_once)
    supervisor = supervise()
    wait_until(lambda: supervisor.trouble is FULL)
    wait_until(lambda: supervisor.trouble is None)


# --- a process that was stopped for a while --------------------------------------------------------------------


def test_a_stopped_process_continues_if_no_other_took_its_run(
    store: Store,
    submit_run: SubmitRun,
    supervise: Supervise,
    starts: Path,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = tmp_path / "gate"
    supervisor = supervise()
    submit_run(act={"kind": "wait", "round": 5, "until": str(gate)})
    wait_for_round(store, 5)
    job = next(iter(supervisor._jobs.values()))
    job.beat += 3600  # no heartbeat, as if the process were stopped
    open_raw(home).execute("UPDATE leases SET beat = beat - 60")
    assert store.status("one") == "interrupted"
    submit_run("two")
    other = store.take(CURRENT, 1, only={"two"})  # the slot is free meanwhile
    assert other
    store.release(other)
    job.beat = 0.0
    wait_until(lambda: store.status("one") == "running")
    gate.touch()
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert len(start_lines(starts)) == 1
    assert supervisor.trouble is None
