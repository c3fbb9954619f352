"""The supervisor: from a question to its answer, through cancels, crashes and nonsense."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from engine.events import Cancelled, Event, Failed, Finished, Round, Started
from engine.jobs import payloads, supervisor, worker_handle
from engine.jobs.process_id import started
from engine.jobs.store import Store
from engine.jobs.supervisor import CANCEL_S, CRASHES, TICK_S, Supervisor, understood
from tests.engine.jobs import fake
from tests.engine.jobs.conftest import Ask, Supervise, ended, until


def told(store: Store, run: str = "one") -> list[Event]:
    return [event for _, event in store.events(run)]


def right(store: Store, run: str = "one") -> list[Event]:
    """What an undisturbed run tells."""
    return list(fake.run({**store.run(run).spec, "starts": "", "fault": None, "act": {}}, None))


def same(store: Store, run: str = "one") -> bool:
    """Everything but the first event, which repeats the question."""
    return told(store, run)[1:] == right(store, run)[1:]


def lines(starts: Path) -> list[list[str]]:
    return [line.split() for line in starts.read_text().splitlines()] if starts.exists() else []


def pid(starts: Path) -> int:
    """The worker of the last start."""
    return int(until(lambda: lines(starts), "a start")[-1][1])


def reached(store: Store, round: int, run: str = "one") -> None:
    until(lambda: any(isinstance(event, Round) and event.round >= round for event in told(store, run)))


def test_a_question_is_answered(store: Store, ask: Ask, supervise: Supervise) -> None:
    supervise()
    assert ended(store, ask()) == "finished"
    assert isinstance(told(store)[0], Started)
    assert same(store)
    assert store.payload("one", "exposure-3")["seen"].shape == (4,)


def test_runs_wait_for_a_slot_and_workers_serve_many(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    for number in range(5):
        ask(f"run-{number}", seed=number)
    supervise(1)
    for number in range(5):
        assert ended(store, f"run-{number}") == "finished"
        assert same(store, f"run-{number}")
    assert [line[0] for line in lines(starts)] == [f"run-{number}" for number in range(5)]
    assert len({line[1] for line in lines(starts)}) == 1  # one process did them all


def test_a_lone_run_gets_all_cores_and_others_one_each(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "cores", lambda: 4)
    supervise(2)
    ended(store, ask("alone"))
    ask("first", pause=0.01)
    reached(store, 1, "first")
    ask("second")
    ask("chosen", options={"threads": 3, "device": "abacus"})
    for run in ("first", "second", "chosen"):
        ended(store, run)
    assert {line[0]: line[3:] for line in lines(starts)} == {
        "alone": ["4", "cpu"],
        "first": ["4", "cpu"],
        "second": ["1", "cpu"],
        "chosen": ["3", "abacus"],
    }
    assert Supervisor(store).workers == 4


def test_one_warm_worker_waits_before_the_first_question(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    mine = supervise(2)
    until(lambda: mine._crew and mine._crew[0].ready)
    warm = mine._crew[0].pid
    mine.wake()
    ended(store, ask())
    assert pid(starts) == warm


@pytest.mark.slow
def test_a_worker_is_replaced_after_its_share_of_jobs(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "JOBS", 2)
    supervise(1)
    for number in range(4):
        ended(store, ask(f"run-{number}"))
    workers = [line[1] for line in lines(starts)]
    assert workers[0] == workers[1] != workers[2] == workers[3]


@pytest.mark.slow
def test_workers_without_work_go_all_but_one(
    store: Store, ask: Ask, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "IDLE_S", 0.0)
    mine = supervise(3)
    for number in range(3):
        ask(f"run-{number}", pause=0.01)
    until(lambda: len(mine._tasks) == 3)
    for number in range(3):
        ended(store, f"run-{number}")
    until(lambda: len(mine._crew) == 1)


@pytest.mark.slow
def test_the_warm_workers_of_one_home_are_no_more_than_its_slots(supervise: Supervise) -> None:
    some = [supervise(2, only=set()) for _ in range(4)]
    until(lambda: sum(one.warm for one in some) == 2)
    time.sleep(5 * TICK_S)
    assert sorted(len(one._crew) for one in some) == [0, 0, 1, 1]
    next(one for one in some if one._crew).stop()
    until(lambda: sum(len(one._crew) for one in some) == 2)


@pytest.mark.slow
def test_who_waits_behind_others_keeps_no_worker(
    store: Store, ask: Ask, supervise: Supervise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "QUEUED_S", 0.2)
    monkeypatch.setattr(supervisor, "LOOK_S", 0.05)
    behind = supervise(only={"two"})
    until(lambda: behind.warm)
    gate = tmp_path / "gate"
    ask("one", act={"kind": "wait", "round": 1, "until": str(gate)})
    supervise(only={"one"})
    reached(store, 1, "one")
    ask("two")
    until(lambda: behind._crew == [])
    time.sleep(5 * TICK_S)
    assert behind._crew == []
    gate.touch()
    assert ended(store, "two") == "finished"


@pytest.mark.slow
def test_a_long_queue_keeps_its_workers(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "QUEUED_S", 0.2)
    monkeypatch.setattr(supervisor, "LOOK_S", 0.05)
    supervise(1)
    for number in range(12):
        ask(f"run-{number}", pause=0.01)
    for number in range(12):
        assert ended(store, f"run-{number}") == "finished"
    assert len({line[1] for line in lines(starts)}) == 1


@pytest.mark.slow
def test_workers_are_warm_for_the_runs_that_are_expected(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    mine = supervise(2)
    until(lambda: mine.warm)
    mine.expect(5)
    assert not mine.warm
    until(lambda: mine.warm)
    warm = {worker.pid for worker in mine._crew}
    assert len(warm) == 2
    for number in range(4):
        ask(f"run-{number}")
    for number in range(4):
        ended(store, f"run-{number}")
    assert {int(line[1]) for line in lines(starts)} == warm


@pytest.mark.slow
def test_a_worker_that_cannot_let_go_of_a_run_keeps_no_other_from_its_end(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handle, "CLOSE_S", 0.3)
    mine = supervise(1)
    ask("first", lingers=str(tmp_path / "never"))
    ask("second")
    assert ended(store, "first") == ended(store, "second") == "finished"
    assert same(store, "second")
    assert lines(starts)[0][1] != lines(starts)[-1][1]
    assert mine.trouble is None


@pytest.mark.slow
def test_the_right_to_a_spare_is_given_back_when_nothing_is_expected_any_more(
    store: Store, supervise: Supervise, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SOON_S", 1.0)
    monkeypatch.setattr(supervisor, "IDLE_S", 0.0)
    mine, others = supervise(2), worker_handle.WarmWorkerSlots(home, 2)
    mine.expect(2)
    until(lambda: len(mine._crew) == 2 and mine.warm)
    assert others.take(2) == 0
    until(lambda: others.take(1) == 1)
    others.leave()
    assert len(mine._crew) == 1


# --- cancelling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [{}, {"kind": "busy", "round": 3}], ids=["polite", "busy"])
def test_a_cancel_frees_the_cores(
    act: dict[str, Any], store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    assert 2 * TICK_S + CANCEL_S < 1
    mine = supervise()
    ask(rounds=10**6, pause=0.001, act=act)
    reached(store, 3)
    began = time.monotonic()
    assert store.cancel("one") == "cancelled"
    assert store.status("one") == "cancelled"
    until(lambda: isinstance(told(store)[-1], Cancelled))
    assert time.monotonic() - began < 3  # a second, and what a busy machine adds
    assert mine._tasks == {}
    if act:
        assert started(pid(starts)) == ""
        assert told(store)[-1] == Cancelled(3)
    ask("next")
    assert ended(store, "next") == "finished"
    assert (pid(starts) == int(lines(starts)[0][1])) is not bool(act)  # the polite one is used again


@pytest.mark.slow
def test_a_cancelled_run_goes_on_when_asked_again(store: Store, ask: Ask, supervise: Supervise, starts: Path) -> None:
    supervise()
    ask(rounds=60, pause=0.005)
    reached(store, 8)
    store.cancel("one")
    ask(rounds=60, pause=0.005)  # at once, while the worker still lets go
    assert ended(store, "one") == "finished"
    assert same(store)
    assert [int(line[2]) >= 6 for line in lines(starts)] == [False, True]
    assert store.run("one").attempt == 2


def test_a_run_cancelled_and_deleted_leaves_nothing(store: Store, ask: Ask, supervise: Supervise, home: Path) -> None:
    supervise()
    ask(rounds=10**6, pause=0.001)
    reached(store, 4)
    store.cancel("one")
    store.delete("one")
    assert store.runs() == []
    until(lambda: list((home / "payloads").iterdir()) == [], "the end of its files")


# --- crashes -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_the_answer_is_the_same(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    supervise()
    ask(rounds=40, pause=0.005)
    reached(store, 8)
    os.kill(pid(starts), signal.SIGKILL)
    assert ended(store, "one") == "finished"
    assert same(store)
    assert [int(line[2]) >= 6 for line in lines(starts)] == [False, True]
    assert store.run("one").attempt == 1


def test_a_worker_that_always_dies_at_one_place_fails_the_run(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    supervise()
    ask(act={"kind": "die", "round": 8})
    assert ended(store, "one") == "failed"
    end = told(store)[-1]
    assert isinstance(end, Failed)
    assert end.reason == (
        "the worker process stopped 3 times at the same place: it was ended by SIGKILL; it may have run out of memory"
    )
    assert end.remedy
    assert [line[2] for line in lines(starts)] == ["0", *["6"] * (CRASHES - 1)]
    ask("two")
    assert ended(store, "two") == "finished"


@pytest.mark.slow
def test_many_deaths_are_forgiven_while_the_run_gets_further(
    store: Store, ask: Ask, supervise: Supervise, starts: Path, tmp_path: Path
) -> None:
    supervise()
    ask(rounds=20, act={"kind": "stumble", "rounds": [4, 7, 10, 13, 16], "marker": str(tmp_path / "once")})
    assert ended(store, "one") == "finished"
    assert same(store)
    assert [line[2] for line in lines(starts)] == ["0", "3", "6", "9", "12", "15"]


def test_a_worker_that_cannot_start_fails_the_run_and_says_why(store: Store, ask: Ask, supervise: Supervise) -> None:
    supervise(preload=("engine.jobs.nowhere",))
    ask()
    assert ended(store, "one") == "failed"
    end = told(store)[-1]
    assert isinstance(end, Failed)
    assert "ended by itself with exit code 1" in end.reason
    assert "No module named 'engine.jobs.nowhere'" in end.trace


def test_a_failed_run_says_why_and_may_be_asked_again(
    store: Store, ask: Ask, supervise: Supervise, starts: Path
) -> None:
    supervise()
    ask(act={"kind": "trip", "round": 5})
    assert ended(store, "one") == "failed"
    end = told(store)[-1]
    assert isinstance(end, Failed)
    assert "ZeroDivisionError" in end.reason
    ask()
    until(lambda: len(lines(starts)) == 2)
    assert lines(starts)[1][2] == "3"


def test_nonsense_from_a_worker_never_reaches_the_store(
    store: Store, ask: Ask, supervise: Supervise, tmp_path: Path, starts: Path
) -> None:
    mine = supervise()
    ask(act={"kind": "garble", "round": 5, "marker": str(tmp_path / "once")})
    assert ended(store, "one") == "finished"
    assert same(store)
    assert [line[2] for line in lines(starts)] == ["0", "3"]
    assert mine.trouble is None


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{\n", b"[]\n", b"7\n", b"\xff\xfe\n", b'{"event": "nothing"}\n', b'{"event": "round"}\n', b"{}\n"],
)
def test_a_line_that_says_nothing_is_not_understood(line: bytes) -> None:
    assert understood(line) is None


def test_lines_that_say_something_are() -> None:
    assert understood(b'{"event": "cancelled", "round": 3}\n') == Cancelled(3)
    assert understood(b'{"done": "a"}\n') == {"done": "a"}


# --- with others ------------------------------------------------------------------------------------------


def test_a_command_leaves_the_runs_of_others_alone(store: Store, ask: Ask, supervise: Supervise) -> None:
    mine: set[str] = set()
    ask("theirs")
    supervise(only=mine)
    mine.add(ask("mine"))
    assert ended(store, "mine") == "finished"
    assert isinstance(told(store, "mine")[-1], Finished)
    assert store.status("theirs") == "queued"


def test_payload_files_are_there_before_their_event(store: Store, ask: Ask, supervise: Supervise) -> None:
    supervise()
    ask(rounds=30, pause=0.002)
    seen = 0
    while store.status("one") in ("queued", "running"):
        for event in told(store)[seen:]:
            seen += 1
            if getattr(event, "kind", "") == "exposure":
                assert payloads.whole(store.home, "one", event.name)  # type: ignore[attr-defined]
    assert seen
