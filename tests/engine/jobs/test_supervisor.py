"""The supervisor runs what was submitted, through cancels, crashes and malformed lines."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from engine.events import Cancelled, Event, Failed, Finished, Round, Started
from engine.jobs import payloads
from engine.jobs import supervisor as supervisor_module
from engine.jobs.backends import local
from engine.jobs.process_id import start_time
from engine.jobs.store import Store
from engine.jobs.supervisor import CANCEL_GRACE_S, CRASHES, TICK_S, Supervisor
from tests.engine.jobs import fake
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end, wait_until

pytestmark = pytest.mark.slow


def events_of(store: Store, run: str = "one") -> list[Event]:
    return [event for _, event in store.events(run)]


def undisturbed_events(store: Store, run: str = "one") -> list[Event]:
    """The events of an undisturbed run with the same spec."""
    return list(fake.run({**store.run(run).spec, "starts": "", "fault": None, "act": {}}, None))


def matches_undisturbed_run(store: Store, run: str = "one") -> bool:
    """Compare all events but the first, which holds the spec."""
    return events_of(store, run)[1:] == undisturbed_events(store, run)[1:]


def start_lines(starts: Path) -> list[list[str]]:
    """For each start: the run, the process, the round of the checkpoint, the threads and the device."""
    if not starts.exists():
        return []
    return [line.split() for line in starts.read_text().splitlines()]


def last_worker_pid(starts: Path) -> int:
    lines = wait_until(lambda: start_lines(starts), "a start")
    return int(lines[-1][1])


def wait_for_round(store: Store, round: int, run: str = "one") -> None:
    def reached() -> bool:
        return any(isinstance(event, Round) and event.round >= round for event in events_of(store, run))

    wait_until(reached, f"round {round} of {run}")


def test_a_submitted_run_finishes_with_the_right_events(
    store: Store, submit_run: SubmitRun, supervise: Supervise
) -> None:
    supervise()
    assert wait_for_end(store, submit_run()) == "finished"
    assert isinstance(events_of(store)[0], Started)
    assert matches_undisturbed_run(store)
    assert store.payload("one", "exposure-3")["seen"].shape == (4,)


def test_runs_wait_for_a_slot_and_workers_serve_many(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    for number in range(5):
        submit_run(f"run-{number}", seed=number)
    supervise(1)
    for number in range(5):
        assert wait_for_end(store, f"run-{number}") == "finished"
        assert matches_undisturbed_run(store, f"run-{number}")
    assert [line[0] for line in start_lines(starts)] == [f"run-{number}" for number in range(5)]
    assert len({line[1] for line in start_lines(starts)}) == 1  # one process ran all of them


def test_a_lone_run_gets_all_cores_and_others_one_each(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "cores", lambda: 4)
    supervise(2)
    wait_for_end(store, submit_run("alone"))
    submit_run("first", pause=0.01)
    wait_for_round(store, 1, "first")
    submit_run("second")
    submit_run("chosen", options={"threads": 3, "device": "abacus"})
    for run in ("first", "second", "chosen"):
        wait_for_end(store, run)
    assert {line[0]: line[3:] for line in start_lines(starts)} == {
        "alone": ["4", "cpu"],
        "first": ["4", "cpu"],
        "second": ["1", "cpu"],
        "chosen": ["3", "abacus"],
    }
    assert Supervisor(store).workers == 4


def test_one_warm_worker_waits_before_the_first_run(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervisor = supervise(2)
    wait_until(lambda: supervisor._handles and supervisor._handles[0].ready)
    warm = supervisor._handles[0].pid  # type: ignore[attr-defined]
    supervisor.wake()
    wait_for_end(store, submit_run())
    assert last_worker_pid(starts) == warm


def test_a_worker_is_replaced_after_a_number_of_jobs(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "JOBS_PER_WORKER", 2)
    supervise(1)
    for number in range(4):
        wait_for_end(store, submit_run(f"run-{number}"))
    workers = [line[1] for line in start_lines(starts)]
    assert workers[0] == workers[1] != workers[2] == workers[3]


def test_idle_workers_end_except_one(
    store: Store, submit_run: SubmitRun, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "IDLE_S", 0.0)
    supervisor = supervise(3)
    for number in range(3):
        submit_run(f"run-{number}", pause=0.01)
    wait_until(lambda: len(supervisor._jobs) == 3)
    for number in range(3):
        wait_for_end(store, f"run-{number}")
    wait_until(lambda: len(supervisor._handles) == 1)


def test_the_supervisors_of_one_home_share_its_warm_worker_slots(supervise: Supervise) -> None:
    supervisors = [supervise(2, only=set()) for _ in range(4)]
    wait_until(lambda: sum(supervisor.warm for supervisor in supervisors) == 2)
    time.sleep(5 * TICK_S)
    assert sorted(len(supervisor._handles) for supervisor in supervisors) == [0, 0, 1, 1]
    next(supervisor for supervisor in supervisors if supervisor._handles).stop()
    wait_until(lambda: sum(len(supervisor._handles) for supervisor in supervisors) == 2)


def test_a_supervisor_that_waits_behind_others_keeps_no_warm_worker(
    store: Store, submit_run: SubmitRun, supervise: Supervise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "QUEUED_S", 0.2)
    monkeypatch.setattr(supervisor_module, "DEMAND_S", 0.05)
    waiting = supervise(only={"two"})
    wait_until(lambda: waiting.warm)
    gate = tmp_path / "gate"
    submit_run("one", act={"kind": "wait", "round": 1, "until": str(gate)})
    supervise(only={"one"})
    wait_for_round(store, 1, "one")
    submit_run("two")
    wait_until(lambda: waiting._handles == [])
    time.sleep(5 * TICK_S)
    assert waiting._handles == []
    gate.touch()
    assert wait_for_end(store, "two") == "finished"


def test_a_long_queue_is_served_by_the_same_worker(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "QUEUED_S", 0.2)
    monkeypatch.setattr(supervisor_module, "DEMAND_S", 0.05)
    supervise(1)
    for number in range(12):
        submit_run(f"run-{number}", pause=0.01)
    for number in range(12):
        assert wait_for_end(store, f"run-{number}") == "finished"
    assert len({line[1] for line in start_lines(starts)}) == 1


def test_workers_warm_up_for_expected_runs(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervisor = supervise(2)
    wait_until(lambda: supervisor.warm)
    supervisor.expect(5)
    assert not supervisor.warm
    wait_until(lambda: supervisor.warm)
    warm = {worker.pid for worker in supervisor._handles}  # type: ignore[attr-defined]
    assert len(warm) == 2
    for number in range(4):
        submit_run(f"run-{number}")
    for number in range(4):
        wait_for_end(store, f"run-{number}")
    assert {int(line[1]) for line in start_lines(starts)} == warm


def test_a_worker_that_cannot_free_an_ended_run_does_not_block_the_next_one(
    store: Store,
    submit_run: SubmitRun,
    supervise: Supervise,
    starts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "CLOSE_S", 0.3)
    supervisor = supervise(1)
    submit_run("first", lingers=str(tmp_path / "never"))
    submit_run("second")
    assert wait_for_end(store, "first") == wait_for_end(store, "second") == "finished"
    assert matches_undisturbed_run(store, "second")
    assert start_lines(starts)[0][1] != start_lines(starts)[-1][1]
    assert supervisor.trouble is None


def test_a_warm_worker_slot_is_freed_when_no_runs_are_expected_any_more(
    store: Store, supervise: Supervise, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "EXPECT_S", 1.0)
    monkeypatch.setattr(supervisor_module, "IDLE_S", 0.0)
    supervisor = supervise(2)
    others = local.WarmWorkerSlots(home, 2)
    supervisor.expect(2)
    wait_until(lambda: len(supervisor._handles) == 2 and supervisor.warm)
    assert others.take(2) == 0
    wait_until(lambda: others.take(1) == 1)
    others.leave()
    assert len(supervisor._handles) == 1


# --- cancelling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [{}, {"kind": "busy", "round": 3}], ids=["polite", "busy"])
def test_a_cancel_frees_the_cores(
    act: dict[str, Any], store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    assert 2 * TICK_S + CANCEL_GRACE_S < 1
    supervisor = supervise()
    submit_run(rounds=10**6, pause=0.001, act=act)
    wait_for_round(store, 3)
    began = time.monotonic()
    assert store.cancel("one") == "cancelled"
    assert store.status("one") == "cancelled"
    wait_until(lambda: isinstance(events_of(store)[-1], Cancelled))
    assert time.monotonic() - began < 3  # a second, plus what a busy machine adds
    wait_until(lambda: supervisor._jobs == {})  # the last event is stored a moment before the job is forgotten
    if act:
        assert start_time(last_worker_pid(starts)) == ""
        assert events_of(store)[-1] == Cancelled(3)
    submit_run("next")
    assert wait_for_end(store, "next") == "finished"
    assert (last_worker_pid(starts) == int(start_lines(starts)[0][1])) is not bool(
        act
    )  # a worker that stopped by itself is used again


def test_a_cancelled_run_resumes_when_submitted_again(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervise()
    submit_run(rounds=60, pause=0.005)
    wait_for_round(store, 8)
    store.cancel("one")
    submit_run(rounds=60, pause=0.005)  # at once, while the worker is still stopping
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [int(line[2]) >= 6 for line in start_lines(starts)] == [False, True]
    assert store.run("one").attempt == 2


def test_a_run_cancelled_and_deleted_leaves_nothing(
    store: Store, submit_run: SubmitRun, supervise: Supervise, home: Path
) -> None:
    supervise()
    submit_run(rounds=10**6, pause=0.001)
    wait_for_round(store, 4)
    store.cancel("one")
    store.delete("one")
    assert store.runs() == []
    wait_until(lambda: list((home / "payloads").iterdir()) == [], "the end of its files")


# --- crashes -----------------------------------------------------------------------------------------------


def test_a_killed_worker_is_replaced_and_the_result_is_the_same(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervise()
    submit_run(rounds=40, pause=0.005)
    wait_for_round(store, 8)
    os.kill(last_worker_pid(starts), signal.SIGKILL)
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [int(line[2]) >= 6 for line in start_lines(starts)] == [False, True]
    assert store.run("one").attempt == 1


def test_a_worker_that_always_crashes_at_one_place_fails_the_run(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervise()
    submit_run(act={"kind": "kill_worker", "round": 8})
    assert wait_for_end(store, "one") == "failed"
    end = events_of(store)[-1]
    assert isinstance(end, Failed)
    assert end.reason == (
        "the worker process stopped 3 times at the same place: it was ended by SIGKILL; it may have run out of memory"
    )
    assert end.remedy
    assert [line[2] for line in start_lines(starts)] == ["0", *["6"] * (CRASHES - 1)]
    submit_run("two")
    assert wait_for_end(store, "two") == "finished"


def test_many_crashes_do_not_fail_a_run_that_gets_further(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path, tmp_path: Path
) -> None:
    supervise()
    submit_run(
        rounds=20, act={"kind": "kill_once_per_round", "rounds": [4, 7, 10, 13, 16], "marker": str(tmp_path / "once")}
    )
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [line[2] for line in start_lines(starts)] == ["0", "3", "6", "9", "12", "15"]


def test_a_worker_that_cannot_start_fails_the_run_with_its_reason(
    store: Store, submit_run: SubmitRun, supervise: Supervise
) -> None:
    supervise(preload=("engine.jobs.nowhere",))
    submit_run()
    assert wait_for_end(store, "one") == "failed"
    end = events_of(store)[-1]
    assert isinstance(end, Failed)
    assert "ended by itself with exit code 1" in end.reason
    assert "No module named 'engine.jobs.nowhere'" in end.trace


def test_a_failed_run_has_a_reason_and_can_be_submitted_again(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: Path
) -> None:
    supervise()
    submit_run(act={"kind": "divide_by_zero", "round": 5})
    assert wait_for_end(store, "one") == "failed"
    end = events_of(store)[-1]
    assert isinstance(end, Failed)
    assert "ZeroDivisionError" in end.reason
    submit_run()
    wait_until(lambda: len(start_lines(starts)) == 2)
    assert start_lines(starts)[1][2] == "3"


def test_malformed_lines_of_a_worker_never_reach_the_store(
    store: Store, submit_run: SubmitRun, supervise: Supervise, tmp_path: Path, starts: Path
) -> None:
    supervisor = supervise()
    submit_run(act={"kind": "write_garbage", "round": 5, "marker": str(tmp_path / "once")})
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [line[2] for line in start_lines(starts)] == ["0", "3"]
    assert supervisor.trouble is None


# --- next to other commands ------------------------------------------------------------------------------------------


def test_a_command_does_not_claim_the_runs_of_others(store: Store, submit_run: SubmitRun, supervise: Supervise) -> None:
    own: set[str] = set()
    submit_run("theirs")
    supervise(only=own)
    own.add(submit_run("mine"))
    assert wait_for_end(store, "mine") == "finished"
    assert isinstance(events_of(store, "mine")[-1], Finished)
    assert store.status("theirs") == "queued"


def test_payload_files_exist_before_their_event(store: Store, submit_run: SubmitRun, supervise: Supervise) -> None:
    supervise()
    submit_run(rounds=200, pause=0.002)
    count = 0
    while store.status("one") in ("queued", "running"):
        for event in events_of(store)[count:]:
            count += 1
            if getattr(event, "kind", "") == "exposure":
                assert payloads.readable(store.home, "one", event.name)  # type: ignore[attr-defined]
    assert count
