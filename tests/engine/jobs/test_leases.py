"""Leases: one owner process at a time, no more than the slots, and a restart from a readable checkpoint."""

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
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw
from tests.engine.jobs.test_store import CURRENT, DEAD, take_lease


def checkpoint(store: Store, run: str, round: int) -> Kept:
    name = f"checkpoint-{round}"
    payloads.write(store.home, run, name, {"x": np.full(50, float(round))})
    return Kept("checkpoint", name, round, {"seconds": 0.5})


def interrupted_run(store: Store, rounds: int = 4) -> Lease:
    """A run with a checkpoint after each round and two more events. Then its owner process ended."""
    store.submit("one", {})
    lease = take_lease(store, DEAD)
    store.append(lease, [Started("one", {}, {})])
    for round in range(1, rounds + 1):
        events: list[Event] = [Round(round, 9, 3), Measured(round, "accuracy", 0.5)]
        store.append(lease, [*events, checkpoint(store, "one", round)])
    store.append(lease, [Round(rounds + 1, 9, 3), Measured(rounds + 1, "accuracy", 0.6)])
    store.submit("one", {})
    return lease


def test_the_oldest_waiting_run_is_taken_first(store: Store) -> None:
    for run in ("c", "a", "b"):
        store.submit(run, {"is": run})
    assert [take_lease(store).run for _ in range(3)] == ["c", "a", "b"]
    assert store.take(CURRENT, 8) is None


def test_slots_are_shared_and_those_of_dead_processes_are_free(store: Store) -> None:
    for run in ("a", "b", "c", "d"):
        store.submit(run, {})
    remote = ProcessId("another machine", 1, "1")
    assert store.take(remote, 2)
    assert store.take(DEAD, 2)
    assert take_lease(store).run == "c"
    assert store.take(CURRENT, 2) is None
    assert store.queue() == ["d"]
    open_raw(store.home.path).execute("UPDATE leases SET beat = ?", (time.time() - process_id.GRACE_S - 1,))
    assert take_lease(store).run == "d"


def test_a_supervisor_limited_to_some_runs_takes_no_other(store: Store) -> None:
    store.submit("a", {})
    store.submit("b", {})
    lease = store.take(CURRENT, 8, only={"b"})
    assert lease
    assert lease.run == "b"
    assert store.take(CURRENT, 8, only={"b"}) is None
    assert store.queue() == ["a"]


def test_a_lease_records_whether_it_is_alone_on_the_machine(store: Store) -> None:
    store.submit("a", {})
    first = take_lease(store)
    assert first.alone
    store.submit("b", {})
    second = take_lease(store)
    assert not second.alone
    store.append(first, [Failed("broke")])
    store.append(second, [Failed("broke")])
    store.submit("c", {})
    store.submit("d", {})
    assert not take_lease(store).alone


def test_a_new_run_starts_from_the_beginning(store: Store) -> None:
    store.submit("one", {"seed": 3}, {"threads": 1})
    lease = take_lease(store)
    assert (lease.resume, lease.after, lease.spec, lease.options) == (None, 0, {"seed": 3}, {"threads": 1})


def test_a_resumed_run_returns_to_its_last_checkpoint(store: Store) -> None:
    interrupted_run(store)
    edition = store.run("one").edition
    lease = take_lease(store)
    assert lease.resume == Kept("checkpoint", "checkpoint-4", 4, {"seconds": 0.5})
    assert store.events("one")[-1] == (lease.after, lease.resume)
    assert lease.after == 13
    assert store.run("one").edition != edition
    store.append(lease, [Round(5, 9, 3)])
    assert store.events("one")[-1][0] == 16  # no number is used twice, so a reader that follows misses nothing


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_an_unreadable_checkpoint_is_skipped(damage: str, store: Store) -> None:
    interrupted_run(store)
    last = store.home.payload("one", "checkpoint-4")
    if damage == "cut":
        os.truncate(last, 300)
    else:
        last.unlink()
    lease = take_lease(store)
    assert lease.resume
    assert lease.resume.round == 3
    assert store.events("one")[-1] == (10, lease.resume)
    assert not last.exists()


def test_without_any_checkpoint_the_run_starts_from_the_beginning(store: Store) -> None:
    interrupted_run(store)
    for path in store.home.folder("one").iterdir():
        os.truncate(path, 10)
    lease = take_lease(store)
    assert (lease.resume, lease.after, store.events("one")) == (None, 0, [])
    assert list(store.home.folder("one").iterdir()) == []
    assert store.run("one").bytes == 0


def test_only_the_last_two_checkpoints_keep_their_files(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    payloads.write(store.home, "one", "exposure-1", {"x": np.zeros(3)})
    store.append(lease, [Kept("exposure", "exposure-1", 1)])
    for round in range(1, 6):
        store.append(lease, [checkpoint(store, "one", round)])
    names = sorted(path.stem for path in store.home.folder("one").iterdir())
    assert names == ["checkpoint-4", "checkpoint-5", "exposure-1"]
    assert len(store.events("one")) == 6


def test_files_that_no_event_names_are_removed_when_a_run_resumes(store: Store) -> None:
    lease = interrupted_run(store)
    payloads.write(store.home, "one", "checkpoint-5", {"x": np.zeros(3)})  # written, but no event names it
    (store.home.folder("one") / ".checkpoint-6.npz.ab12.tmp").write_bytes(b"half")
    again = take_lease(store)
    assert again.token != lease.token
    assert sorted(path.name for path in store.home.folder("one").iterdir()) == ["checkpoint-3.npz", "checkpoint-4.npz"]


def test_an_owner_may_rewind_its_own_run(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    store.append(lease, [Round(1, 9, 3), checkpoint(store, "one", 1), Round(2, 9, 3)])
    again = store.rewind(lease)
    assert (again.token, again.after) == (lease.token, 2)
    assert again.resume
    assert again.resume.round == 1
    assert [number for number, _ in store.events("one")] == [1, 2]
    assert store.status("one") == "running"


def test_renewing_keeps_a_lease_alive(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    open_raw(home).execute("UPDATE leases SET beat = 0")
    assert store.status("one") == "interrupted"
    store.renew(lease)
    assert store.status("one") == "running"


def test_many_threads_take_no_run_twice(store: Store) -> None:
    for number in range(40):
        store.submit(f"run-{number}", {})
    runs: list[str] = []

    def take_all() -> None:
        own_store = Store()
        lease = own_store.take(CURRENT, 100)
        while lease:
            runs.append(lease.run)
            lease = own_store.take(CURRENT, 100)

    threads = [threading.Thread(target=take_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(runs) == sorted(f"run-{number}" for number in range(40))


def test_a_stopped_owner_continues_unless_another_took_its_run(store: Store, home: Path) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    open_raw(home).execute("UPDATE leases SET beat = beat - ?", (process_id.GRACE_S + 1,))
    store.submit("two", {})
    assert store.take(CURRENT, 1)  # a stopped process uses no core
    store.renew(lease)
    assert store.status("one") == "running"
    open_raw(home).execute("UPDATE leases SET beat = beat - ?", (process_id.GRACE_S + 1,))
    assert store.submit("one", {}) == "queued"
    assert take_lease(store).run == "one"
    with pytest.raises(LeaseLost):
        store.renew(lease)


def test_an_empty_checkpoint_is_skipped(store: Store) -> None:
    interrupted_run(store)
    payloads.write(store.home, "one", "checkpoint-4", {})
    resume = take_lease(store).resume
    assert resume
    assert resume.round == 3


def test_a_finished_run_keeps_no_checkpoint(store: Store) -> None:
    interrupted_run(store)
    lease = take_lease(store)
    payloads.write(store.home, "one", "exposure-1", {"x": np.zeros(3)})
    store.append(lease, [Kept("exposure", "exposure-1", 1), checkpoint(store, "one", 5), Finished(5, 0.1)])
    assert [path.stem for path in store.home.folder("one").iterdir()] == ["exposure-1"]
    assert store.submit("one", {}) == "finished"
    assert [event.name for _, event in store.events("one") if isinstance(event, Kept)][-1] == "checkpoint-5"


@pytest.mark.parametrize("end", [Failed("broke"), Cancelled(5)])
def test_a_run_that_may_resume_keeps_its_checkpoints(end: Event, store: Store) -> None:
    interrupted_run(store)
    store.append(take_lease(store), [end])
    assert sorted(path.stem for path in store.home.folder("one").iterdir()) == ["checkpoint-3", "checkpoint-4"]


def test_a_run_resubmitted_before_it_finished_keeps_its_checkpoints(store: Store) -> None:
    interrupted_run(store)
    lease = take_lease(store)
    store.cancel("one")
    assert store.submit("one", {}) == "queued"
    store.append(lease, [Finished(5, 0.1)])
    assert store.status("one") == "queued"
    again = take_lease(store)
    assert again.resume
    assert again.resume.round == 4


@pytest.mark.parametrize("column", ["spec", "options"])
@pytest.mark.parametrize("text", ["{cut", "[1]", ""])
def test_a_run_with_an_unreadable_spec_never_starts_and_blocks_no_other(
    column: str, text: str, store: Store, home: Path
) -> None:
    store.submit("one", {"seed": 1})
    store.submit("two", {"seed": 2})
    open_raw(home).execute(f"UPDATE runs SET {column} = ? WHERE id = 'one'", (text,))
    assert take_lease(store).run == "two"
    assert store.take(CURRENT, 8) is None
    assert {run.id: run.status for run in store.runs()} == {"one": "damaged", "two": "running"}


@pytest.mark.parametrize("text", ["{cut", '{"event": "kept", "kind": "checkpoint"}', ""])
def test_an_unreadable_event_is_no_checkpoint_and_blocks_no_run(text: str, store: Store, home: Path) -> None:
    interrupted_run(store)
    open_raw(home).execute("UPDATE events SET body = ? WHERE number IN (13, 15)", (text,))
    assert [run.id for run in store.runs()] == ["one"]
    resume = take_lease(store).resume
    assert resume
    assert resume.round == 3


@pytest.mark.parametrize("reason", ["no slot", "other runs only", "nothing waits"])
def test_a_supervisor_that_waits_does_not_block_writers(
    reason: str, store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    store.submit("a", {})
    take_lease(store)
    if reason != "nothing waits":
        store.submit("b", {})
    waiting_store = Store()
    writer = open_raw(home)
    writer.execute("BEGIN IMMEDIATE")
    slots = 1 if reason == "no slot" else 2
    only = {"c"} if reason == "other runs only" else None
    assert waiting_store.take(CURRENT, slots, only) is None
    writer.execute("ROLLBACK")


def test_an_attack_waits_for_the_run_whose_states_it_reads(store: Store) -> None:
    attack = BatchMember("attack", {"attack": {"name": "analytic"}}, after="one")
    store.batches.request(Batch("try", "a run and an attack on it", (attack, BatchMember("one", {}))))
    lease = take_lease(store)
    assert lease.run == "one"  # although an instant attack comes first otherwise
    assert store.take(CURRENT, 9) is None
    store.append(lease, [Finished(1, 0.1)])
    assert take_lease(store).run == "attack"


def test_an_attack_does_not_wait_for_a_run_that_was_cancelled(store: Store) -> None:
    attack = BatchMember("attack", {"attack": {"name": "analytic"}}, after="one")
    store.batches.request(Batch("try", "a run and an attack on it", (BatchMember("one", {}), attack)))
    store.cancel("one")
    assert take_lease(store).run == "attack"
