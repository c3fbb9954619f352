"""Leases: one holder at a time, as many as there are slots, and always back to a checkpoint that can be read."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from engine.errors import LeaseLost
from engine.events import Cancelled, Event, Failed, Finished, Kept, Measured, Round, Started
from engine.jobs import database, payloads, process_id
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from tests.engine.jobs.test_database import raw
from tests.engine.jobs.test_store import GONE, ME, taken


def checkpoint(store: Store, run: str, round: int) -> Kept:
    name = f"checkpoint-{round}"
    payloads.write(store.home, run, name, {"x": np.full(50, float(round))})
    return Kept("checkpoint", name, round, {"seconds": 0.5})


def interrupted(store: Store, rounds: int = 4) -> Lease:
    """A run that told a checkpoint after each round, and a little more; then its holder was gone."""
    store.submit("one", {})
    lease = taken(store, GONE)
    store.append(lease, [Started("one", {}, {})])
    for round in range(1, rounds + 1):
        told: list[Event] = [Round(round, 9, 3), Measured(round, "accuracy", 0.5), checkpoint(store, "one", round)]
        store.append(lease, told)
    store.append(lease, [Round(rounds + 1, 9, 3), Measured(rounds + 1, "accuracy", 0.6)])
    store.submit("one", {})
    return lease


def test_the_oldest_waiting_run_is_taken_first(store: Store) -> None:
    for run in ("c", "a", "b"):
        store.submit(run, {"is": run})
    assert [taken(store).run for _ in range(3)] == ["c", "a", "b"]
    assert store.take(ME, 8) is None


def test_slots_are_shared_and_those_of_the_dead_are_free(store: Store) -> None:
    for run in ("a", "b", "c", "d"):
        store.submit(run, {})
    elsewhere = ProcessId("another machine", 1, "1")
    assert store.take(elsewhere, 2)
    assert store.take(GONE, 2)
    assert taken(store).run == "c"
    assert store.take(ME, 2) is None
    assert store.queue() == ["d"]
    raw(store.home.path).execute("UPDATE leases SET beat = ?", (time.time() - process_id.GRACE_S - 1,))
    assert taken(store).run == "d"


def test_one_that_works_for_some_runs_only_takes_no_other(store: Store) -> None:
    store.submit("a", {})
    store.submit("b", {})
    lease = store.take(ME, 8, only={"b"})
    assert lease
    assert lease.run == "b"
    assert store.take(ME, 8, only={"b"}) is None
    assert store.queue() == ["a"]


def test_a_lease_says_whether_it_has_the_machine_to_itself(store: Store) -> None:
    store.submit("a", {})
    first = taken(store)
    assert first.alone
    store.submit("b", {})
    second = taken(store)
    assert not second.alone
    store.append(first, [Failed("broke")])
    store.append(second, [Failed("broke")])
    store.submit("c", {})
    store.submit("d", {})
    assert not taken(store).alone


def test_a_fresh_run_begins_at_the_beginning(store: Store) -> None:
    store.submit("one", {"seed": 3}, {"threads": 1})
    lease = taken(store)
    assert (lease.resume, lease.after, lease.spec, lease.options) == (None, 0, {"seed": 3}, {"threads": 1})


def test_going_on_means_going_back_to_the_last_checkpoint(store: Store) -> None:
    interrupted(store)
    edition = store.run("one").edition
    lease = taken(store)
    assert lease.resume == Kept("checkpoint", "checkpoint-4", 4, {"seconds": 0.5})
    assert store.events("one")[-1] == (lease.after, lease.resume)
    assert lease.after == 13
    assert store.run("one").edition != edition
    store.append(lease, [Round(5, 9, 3)])
    assert store.events("one")[-1][0] == 16  # no number is given twice: a reader that follows misses nothing


@pytest.mark.parametrize("harm", ["cut", "missing"])
def test_a_checkpoint_that_cannot_be_read_is_passed_over(harm: str, store: Store) -> None:
    interrupted(store)
    last = store.home.payload("one", "checkpoint-4")
    os.truncate(last, 300) if harm == "cut" else last.unlink()
    lease = taken(store)
    assert lease.resume
    assert lease.resume.round == 3
    assert store.events("one")[-1] == (10, lease.resume)
    assert not last.exists()


def test_without_any_checkpoint_it_begins_again(store: Store) -> None:
    interrupted(store)
    for path in store.home.folder("one").iterdir():
        os.truncate(path, 10)
    lease = taken(store)
    assert (lease.resume, lease.after, store.events("one")) == (None, 0, [])
    assert list(store.home.folder("one").iterdir()) == []
    assert store.run("one").bytes == 0


def test_only_the_last_two_checkpoints_keep_their_files(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    payloads.write(store.home, "one", "exposure-1", {"x": np.zeros(3)})
    store.append(lease, [Kept("exposure", "exposure-1", 1)])
    for round in range(1, 6):
        store.append(lease, [checkpoint(store, "one", round)])
    names = sorted(path.stem for path in store.home.folder("one").iterdir())
    assert names == ["checkpoint-4", "checkpoint-5", "exposure-1"]
    assert len(store.events("one")) == 6


def test_files_that_no_event_names_are_swept_when_a_run_goes_on(store: Store) -> None:
    lease = interrupted(store)
    payloads.write(store.home, "one", "checkpoint-5", {"x": np.zeros(3)})  # written, and never told
    (store.home.folder("one") / ".checkpoint-6.npz.ab12.tmp").write_bytes(b"half")
    again = taken(store)
    assert again.token != lease.token
    assert sorted(path.name for path in store.home.folder("one").iterdir()) == ["checkpoint-3.npz", "checkpoint-4.npz"]


def test_a_holder_may_go_back_itself(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    store.append(lease, [Round(1, 9, 3), checkpoint(store, "one", 1), Round(2, 9, 3)])
    again = store.rewind(lease)
    assert (again.token, again.after) == (lease.token, 2)
    assert again.resume
    assert again.resume.round == 1
    assert [number for number, _ in store.events("one")] == [1, 2]
    assert store.status("one") == "running"


def test_renewing_keeps_a_lease_alive(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = taken(store)
    raw(home).execute("UPDATE leases SET beat = 0")
    assert store.status("one") == "interrupted"
    store.renew(lease)
    assert store.status("one") == "running"


def test_many_takers_and_no_run_twice(store: Store) -> None:
    for number in range(40):
        store.submit(f"run-{number}", {})
    got: list[str] = []

    def work() -> None:
        mine = Store()
        while lease := mine.take(ME, 100):
            got.append(lease.run)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(f"run-{number}" for number in range(40))


def test_a_holder_that_was_stopped_goes_on_unless_its_run_was_taken(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = taken(store)
    raw(home).execute("UPDATE leases SET beat = beat - ?", (process_id.GRACE_S + 1,))
    store.submit("two", {})
    assert store.take(ME, 1)  # a process that stands still uses no core
    store.renew(lease)
    assert store.status("one") == "running"
    raw(home).execute("UPDATE leases SET beat = beat - ?", (process_id.GRACE_S + 1,))
    assert store.submit("one", {}) == "queued"
    assert taken(store).run == "one"
    with pytest.raises(LeaseLost):
        store.renew(lease)


def test_an_empty_checkpoint_is_passed_over(store: Store) -> None:
    interrupted(store)
    payloads.write(store.home, "one", "checkpoint-4", {})
    resume = taken(store).resume
    assert resume
    assert resume.round == 3


def test_a_finished_run_keeps_no_checkpoint(store: Store) -> None:
    interrupted(store)
    lease = taken(store)
    payloads.write(store.home, "one", "exposure-1", {"x": np.zeros(3)})
    store.append(lease, [Kept("exposure", "exposure-1", 1), checkpoint(store, "one", 5), Finished(5, 0.1)])
    assert [path.stem for path in store.home.folder("one").iterdir()] == ["exposure-1"]
    assert store.submit("one", {}) == "finished"
    assert [event.name for _, event in store.events("one") if isinstance(event, Kept)][-1] == "checkpoint-5"


@pytest.mark.parametrize("end", [Failed("broke"), Cancelled(5)])
def test_one_that_may_go_on_keeps_them(end: Event, store: Store) -> None:
    interrupted(store)
    store.append(taken(store), [end])
    assert sorted(path.stem for path in store.home.folder("one").iterdir()) == ["checkpoint-3", "checkpoint-4"]


def test_so_does_one_that_was_cancelled_and_asked_again_before_it_finished(store: Store) -> None:
    interrupted(store)
    lease = taken(store)
    store.cancel("one")
    assert store.submit("one", {}) == "queued"
    store.append(lease, [Finished(5, 0.1)])
    assert store.status("one") == "queued"
    again = taken(store)
    assert again.resume
    assert again.resume.round == 4


@pytest.mark.parametrize("column", ["spec", "options"])
@pytest.mark.parametrize("junk", ["{cut", "[1]", ""])
def test_a_question_that_cannot_be_read_is_never_run_and_holds_nobody_up(
    column: str, junk: str, store: Store, home: Path
) -> None:
    store.submit("one", {"seed": 1})
    store.submit("two", {"seed": 2})
    raw(home).execute(f"UPDATE runs SET {column} = ? WHERE id = 'one'", (junk,))
    assert taken(store).run == "two"
    assert store.take(ME, 8) is None
    assert {run.id: run.status for run in store.runs()} == {"one": "queued", "two": "running"}


@pytest.mark.parametrize("junk", ["{cut", '{"event": "kept", "kind": "checkpoint"}', ""])
def test_an_event_that_cannot_be_read_is_no_checkpoint_and_holds_nobody_up(junk: str, store: Store, home: Path) -> None:
    interrupted(store)
    raw(home).execute("UPDATE events SET body = ? WHERE number IN (13, 15)", (junk,))
    assert [run.id for run in store.runs()] == ["one"]
    resume = taken(store).resume
    assert resume
    assert resume.round == 3


@pytest.mark.parametrize("why", ["no slot", "not mine", "nothing waits"])
def test_whoever_has_to_wait_holds_up_nobody_who_writes(
    why: str, store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    store.submit("a", {})
    taken(store)
    if why != "nothing waits":
        store.submit("b", {})
    mine = Store()
    other = raw(home)
    other.execute("BEGIN IMMEDIATE")
    assert mine.take(ME, 1 if why == "no slot" else 2, {"c"} if why == "not mine" else None) is None
    other.execute("ROLLBACK")
