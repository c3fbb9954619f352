"""Trouble: a lost lease, a full disk, a stopped process; the supervisor outlives it, and the run says why it ended."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import Any

import pytest

from engine.errors import HomeFull
from engine.events import Event, Failed, Round
from engine.jobs.leases import Lease
from engine.jobs.process_id import started
from engine.jobs.store import Store
from engine.jobs.supervisor import TICK_S
from tests.engine.jobs.conftest import Ask, Supervise, ended, until
from tests.engine.jobs.test_database import raw
from tests.engine.jobs.test_store import ME
from tests.engine.jobs.test_supervisor import lines, pid, reached, same, told

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_letting_go_leaves_an_interrupted_run_that_goes_on_later(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    mine = supervise()
    ask(rounds=40, pause=0.005)
    reached(store, 5)
    mine.stop()
    assert store.status("one") == "interrupted"
    assert started(pid(starts)) == ""
    assert mine._crew == []
    mine.stop()
    mine.start()
    time.sleep(3 * TICK_S)
    assert store.status("one") == "interrupted"  # nobody asked
    ask(rounds=40, pause=0.005)
    assert ended(store, "one") == "finished"
    assert same(store)
    assert int(lines(starts)[1][2]) >= 3


def test_whoever_loses_the_lease_ends_its_worker_and_forgets_the_run(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, home: Path
) -> None:
    mine = supervise(2)
    ask(rounds=10**6, pause=0.001)
    reached(store, 4)
    worker = pid(starts)
    raw(home).execute("UPDATE leases SET token = 'of another'")
    until(lambda: started(worker) == "")
    until(lambda: mine._tasks == {})
    assert not isinstance(told(store)[-1], Failed)
    ask("two")
    assert ended(store, "two") == "finished"


def test_a_full_home_fails_the_run_in_words(
    store: Store, ask: Ask, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
    supervise()
    assert ended(store, "one") == "failed"
    end = told(store)[-1]
    assert isinstance(end, Failed)
    assert "of 1 B allowed" in end.reason
    assert "Delete runs" in end.remedy


@pytest.mark.slow
def test_a_store_that_refuses_ends_the_run_and_not_the_supervisor(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, full = store.append, [True]

    def refuse(lease: Any, events: Any) -> None:
        if full and any(isinstance(event, Round) and event.round >= 5 for event in events):
            raise HomeFull("home: no space is left", "Delete runs")
        append(lease, events)

    monkeypatch.setattr(store, "append", refuse)
    mine = supervise()
    ask(pause=0.01)
    assert ended(store, "one") == "failed"
    assert told(store)[-1] == Failed("home: no space is left", "Delete runs")
    assert isinstance(mine.trouble, HomeFull)
    assert started(pid(starts)) == ""
    full.clear()
    ask(pause=0.01)
    assert ended(store, "one") == "finished"
    assert same(store)
    assert mine.trouble is None


@pytest.mark.slow
def test_a_supervisor_outlives_an_unforeseen_error(
    store: Store, ask: Ask, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, errors = store.take, [OSError(errno.EMFILE, "Too many open files")]

    def trip(*args: Any) -> Any:
        if errors:
            raise errors.pop()
        return take(*args)

    monkeypatch.setattr(store, "take", trip)
    supervise()
    assert ended(store, ask()) == "finished"


# --- a disk that fills while a run runs ----------------------------------------------------------------------


FULL = HomeFull("home: no space is left", "Delete runs")


@pytest.fixture
def disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Full from round 5 on: then nothing is written any more, not even an ending."""
    append, renew, state = store.append, store.renew, {"fills": True, "full": False}

    def refuse(lease: Lease, events: list[Event]) -> None:
        state["full"] |= state["fills"] and any(isinstance(event, Round) and event.round >= 5 for event in events)
        if state["full"]:
            raise FULL
        append(lease, events)

    monkeypatch.setattr(store, "append", refuse)
    monkeypatch.setattr(store, "renew", lambda lease: refuse(lease, []) if state["full"] else renew(lease))
    return state


def test_a_run_lost_to_a_full_disk_is_let_go_at_once_and_says_why_later(
    store: Store, ask: Ask, supervise: Supervise, disk: dict[str, bool], starts: Path
) -> None:
    mine = supervise()
    ask(pause=0.005)
    reached(store, 1)
    began = time.monotonic()
    until(lambda: store.status("one") == "interrupted")
    assert time.monotonic() - began < 10  # not the patience for a silent holder
    until(lambda: not mine.working)
    time.sleep(3 * TICK_S)
    assert mine.trouble is FULL
    disk.update(fills=False, full=False)
    until(lambda: store.status("one") == "failed")
    assert told(store)[-1] == Failed("home: no space is left", "Delete runs")
    until(lambda: mine.trouble is None)
    ask(pause=0.005)
    assert ended(store, "one") == "finished"
    assert same(store)


def test_a_run_lost_to_a_full_disk_may_be_asked_again_before_it_said_why(
    store: Store, ask: Ask, supervise: Supervise, disk: dict[str, bool], starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = supervise()
    ask(pause=0.005)
    until(lambda: store.status("one") == "interrupted")
    ask(pause=0.005)
    until(lambda: len(lines(starts)) == 2)  # taken anew, and lost anew
    until(lambda: store.status("one") == "interrupted")
    disk.update(fills=False, full=False)
    until(lambda: store.status("one") == "failed")
    assert [type(event) for event in told(store)].count(Failed) == 1
    until(lambda: mine.trouble is None)


def test_a_lost_run_whose_supervisor_ends_is_interrupted_and_its_reason_stays(
    store: Store, ask: Ask, supervise: Supervise, disk: dict[str, bool]
) -> None:
    mine = supervise()
    ask(pause=0.005)
    until(lambda: store.status("one") == "interrupted")
    mine.stop()
    assert mine.trouble is FULL
    assert store.status("one") == "interrupted"


def test_trouble_that_took_no_run_passes_with_it(
    store: Store, ask: Ask, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy, errors = store.tidy, [FULL]

    def trip() -> None:
        if errors:
            raise errors.pop()
        tidy()

    monkeypatch.setattr(store, "tidy", trip)
    mine = supervise()
    until(lambda: mine.trouble is FULL)
    until(lambda: mine.trouble is None)


# --- a process that was stopped for a while --------------------------------------------------------------------


def test_a_stopped_process_goes_on_when_nobody_took_its_run(
    store: Store,
    ask: Ask,
    supervise: Supervise,
    starts: Path,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = tmp_path / "gate"
    mine = supervise()
    ask(act={"kind": "wait", "round": 5, "until": str(gate)})
    reached(store, 5)
    task = next(iter(mine._tasks.values()))
    task.beat += 3600  # it does not beat, as if it were stopped
    raw(home).execute("UPDATE leases SET beat = beat - 60")
    assert store.status("one") == "interrupted"
    ask("two")
    other = store.take(ME, 1, only={"two"})  # its slot is free meanwhile
    assert other
    store.release(other)
    task.beat = 0.0
    until(lambda: store.status("one") == "running")
    gate.touch()
    assert ended(store, "one") == "finished"
    assert same(store)
    assert len(lines(starts)) == 1
    assert mine.trouble is None
