"""An attack of a Try batch waits for the run whose states it reads, and never for one that no supervisor starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.events import Event, Failed, Finished
from engine.jobs.batches import MOST_RESUMES, Batch, BatchMember
from engine.jobs.store import Store
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end
from tests.engine.jobs.serve import FAKE
from tests.engine.jobs.test_store import CURRENT, DEAD, take_lease

RUN, ATTACK = "run", "attack"
INSTANT = {"attack": {"name": "analytic"}}


@pytest.fixture
def batch(store: Store) -> Batch:
    """An instant attack, which starts before any run where it need not wait, and the run that it waits for."""
    members = (BatchMember(ATTACK, INSTANT, after=RUN), BatchMember(RUN, {}))
    batch = Batch("try", "a run and an attack on it", members)
    store.batches.request(batch, "ann")
    return batch


def next_of(store: Store, only: set[str] | None = None) -> str:
    lease = store.take(CURRENT, 9, only)
    return lease.run if lease else ""


@pytest.mark.usefixtures("batch")
def test_a_command_starts_its_attack_although_the_run_is_queued(store: Store) -> None:
    assert next_of(store, {ATTACK}) == ATTACK


@pytest.mark.usefixtures("batch")
def test_a_command_with_both_members_trains_first(store: Store) -> None:
    assert next_of(store, {ATTACK, RUN}) == RUN
    assert next_of(store, {ATTACK, RUN}) == ""


@pytest.mark.usefixtures("batch")
def test_a_command_waits_while_another_supervisor_runs_the_run(store: Store) -> None:
    lease = take_lease(store)
    assert next_of(store, {ATTACK}) == ""
    store.append(lease, [Finished(1, 0.1)])
    assert next_of(store, {ATTACK}) == ATTACK


@pytest.mark.usefixtures("batch")
def test_a_command_does_not_wait_for_a_run_whose_server_ended(store: Store) -> None:
    assert store.take(DEAD, 9)
    assert next_of(store, {ATTACK}) == ATTACK


def test_the_supervisor_of_a_command_ends_its_attack(
    store: Store, submit_run: SubmitRun, supervise: Supervise, starts: object
) -> None:
    body = {"id": ATTACK, "rounds": 2, "starts": str(starts)}
    store.batches.request(Batch("try", "", (BatchMember(ATTACK, body, after=RUN), BatchMember(RUN, {"id": RUN}))))
    submit_run(ATTACK, rounds=2)
    supervise(only={ATTACK}, entry=FAKE)
    assert wait_for_end(store, ATTACK) == "finished" and store.status(RUN) == "queued"


# --- servers -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("batch")
def test_an_attack_waits_for_a_run_that_will_be_resumed(store: Store) -> None:
    assert store.take(DEAD, 9)  # a server is killed, and another one has not tidied up yet
    assert store.status(RUN) == "interrupted" and next_of(store) == ""
    assert store.batches.resume_interrupted() == [RUN]
    assert next_of(store) == RUN


def test_an_attack_does_not_wait_for_an_interrupted_run_that_no_one_resumes(store: Store, batch: Batch) -> None:
    store.submit(ATTACK, INSTANT, {}, "bob")
    assert store.take(DEAD, 9)
    store.batches.withdraw(batch.id, "ann")
    assert next_of(store) == ATTACK


@pytest.mark.usefixtures("batch")
def test_an_attack_does_not_wait_for_a_run_that_ends_every_server(store: Store) -> None:
    for _ in range(MOST_RESUMES):
        assert store.take(DEAD, 9, {RUN})
        store.batches.resume_interrupted()
    assert store.take(DEAD, 9, {RUN})
    assert store.batches.resume_interrupted() == [] and next_of(store) == ATTACK


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize("end", [Finished(1, 0.1), Failed("broke")])
def test_an_attack_starts_when_its_run_has_ended(store: Store, end: Event) -> None:
    lease = take_lease(store)
    assert lease.run == RUN and next_of(store) == ""
    store.append(lease, [end])
    assert next_of(store) == ATTACK


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize(
    "remove",
    [
        lambda store: store.cancel(RUN),
        lambda store: store.delete(RUN),
        lambda store: store.withdraw([RUN], "ann"),
    ],
)
def test_an_attack_starts_when_its_run_was_removed(store: Store, remove: Callable[[Store], object]) -> None:
    remove(store)
    assert next_of(store) == ATTACK


def test_an_attack_of_two_visitors_waits_while_one_of_them_wants_the_run(store: Store, batch: Batch) -> None:
    store.batches.request(batch, "bob")
    store.withdraw([RUN], "ann")
    assert next_of(store) == RUN and next_of(store) == ""


# --- places in the queue -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("batch")
def test_an_attack_has_its_place_behind_its_run(store: Store) -> None:
    store.submit("other", {})
    assert store.queue() == [RUN, ATTACK, "other"]
    assert {run.id: run.place for run in store.runs()} == {RUN: 1, ATTACK: 2, "other": 3}
    assert store.run(ATTACK).place == 2
    take_lease(store)
    assert store.queue() == [ATTACK, "other"]
