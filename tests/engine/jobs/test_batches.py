"""A stored batch: many runs requested as one, by several visitors, cancelled by each for themselves."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from engine.errors import UnknownName
from engine.events import Failed, Finished, Round
from engine.jobs import visits
from engine.jobs.batch import progress
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.process_id import ProcessId
from engine.jobs.requests import MACHINE
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw

RUNS = ("one", "two", "three")


def batch_of(runs: Sequence[str] = RUNS, problems: dict[str, str] | None = None) -> Batch:
    members = [BatchMember(run, {"id": run}, (problems or {}).get(run, "")) for run in runs]
    return Batch("sweep", "a sweep", tuple(members), {"screen": "tradeoff"})


def end(store: Store, run: str) -> None:
    lease = store.take(ProcessId.me(), 99, {run})
    assert lease
    store.append(lease, [Finished(1, 2.0)])


def test_the_id_follows_from_the_kind_and_the_runs_in_their_order() -> None:
    batch = batch_of()
    assert batch.id == batch_of().id
    renamed = Batch("sweep", "another title", batch.members)
    assert renamed.id == batch.id
    assert len({batch.id, batch_of(RUNS[::-1]).id, batch_of(RUNS[:2]).id, Batch("table", "", batch.members).id}) == 4


def test_a_batch_is_requested_listed_and_found(store: Store) -> None:
    batch = batch_of()
    assert store.batches.find(batch.id) is None
    assert store.batches.request(batch, "ann") == dict.fromkeys(RUNS, "queued")
    (listed,) = store.batches.listed()
    assert listed == store.batches.find(batch.id)
    assert (listed.kind, listed.title, listed.runs, listed.visitors) == ("sweep", "a sweep", RUNS, ("ann",))
    assert listed.spec == {"screen": "tradeoff"} and abs(listed.at - time.time()) < 60
    assert "ann" not in str(listed.json())


def test_finished_members_are_reused(store: Store) -> None:
    store.submit("two", {"id": "two"})
    end(store, "two")
    assert store.batches.request(batch_of()) == {"one": "queued", "two": "finished", "three": "queued"}
    assert store.run("two").attempt == 1


def test_a_member_that_cannot_be_requested_says_why_and_the_others_go_on(store: Store) -> None:
    batch = batch_of(problems={"two": "noise: must be below 1000. Lower it"})
    assert store.batches.request(batch) == {"one": "queued", "three": "queued"}
    listed = store.batches.find(batch.id)
    assert listed and listed.runs == ("one", "three")
    assert listed.problems == {1: "noise: must be below 1000. Lower it"}
    assert store.statuses(["two"]) == {}
    store.batches.request(Batch("sweep", "", (BatchMember("", {}, "no spec"),)))  # its settings make no spec


# --- cancelling --------------------------------------------------------------------------------------------


def test_a_cancel_ends_what_no_one_else_wants(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.request(batch, "bob")
    withdrawal = store.batches.withdraw(batch.id, "ann")
    assert (withdrawal.cancelled, withdrawal.kept) == ((), RUNS)
    assert not store.batches.wanted_by(batch.id, "ann") and store.batches.wanted_by(batch.id, "bob")
    assert set(store.statuses(RUNS).values()) == {"queued"}
    assert store.batches.withdraw(batch.id, "bob").cancelled == RUNS
    assert set(store.statuses(RUNS).values()) == {"cancelled"}


def test_a_second_cancel_changes_nothing(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    assert store.batches.withdraw(batch.id, "ann").cancelled == RUNS
    withdrawal = store.batches.withdraw(batch.id, "ann")
    assert (withdrawal.cancelled, withdrawal.kept) == ((), ())


def test_a_single_request_and_another_batch_keep_a_run(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.submit("one", {"id": "one"}, visitor="bob")
    store.batches.request(batch_of(["two"]), "cy")
    withdrawal = store.batches.withdraw(batch.id, "ann")
    assert (withdrawal.cancelled, set(withdrawal.kept)) == (("three",), {"one", "two"})


def test_ones_own_other_batch_keeps_a_run_too(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.request(batch_of(["two"]), "ann")
    assert set(store.batches.withdraw(batch.id, "ann").cancelled) == {"one", "three"}


def test_who_left_keeps_no_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.request(batch, "bob")
    now = time.time()
    monkeypatch.setattr("engine.jobs.visits.time.time", lambda: now + visits.LEFT_S + 1)
    store.visits.see(["ann"])
    assert store.batches.withdraw(batch.id, "ann").cancelled == RUNS


def test_the_request_of_a_command_counts_while_its_process_lives(store: Store) -> None:
    batch = batch_of()
    command = store.visits.command()
    store.batches.request(batch, command)
    store.batches.request(batch, "ann")
    assert store.batches.withdraw(batch.id, "ann").kept == RUNS
    store.batches.request(batch, "ann")
    raw = open_raw(store.home.path)
    raw.execute("UPDATE visits SET start = 'before' WHERE visitor = ?", (command,))
    assert store.batches.withdraw(batch.id, "ann").cancelled == RUNS


def test_the_machine_keeps_a_run_from_visitors_but_not_from_its_owner(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, MACHINE)
    store.batches.request(batch, "ann")
    assert store.batches.withdraw(batch.id, "ann").kept == RUNS
    assert store.batches.withdraw(batch.id, "ann", owns_machine=True).cancelled == RUNS


def test_another_visitor_resumes_a_cancelled_batch(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.withdraw(batch.id, "ann")
    store.delete("three")
    assert store.batches.resume(batch.id, "bob") == {"one": "queued", "two": "queued"}
    assert store.batches.wanted_by(batch.id, "bob") and not store.batches.wanted_by(batch.id, "ann")
    assert store.requesters(["one"]) == {"one": ["ann", "bob"]}
    assert store.requesters(["one"], wanting=True) == {"one": ["bob"]}
    listed = store.batches.find(batch.id)
    assert listed and listed.counts(store.statuses(RUNS)) == {"queued": 2, "deleted": 1}


def test_an_unknown_batch_is_refused(store: Store) -> None:
    for action in (
        lambda: store.batches.withdraw("no", "ann"),
        lambda: store.batches.resume("no"),
        lambda: store.batches.delete("no"),
    ):
        with pytest.raises(UnknownName, match="batch: no no"):
            action()


def test_a_deleted_batch_leaves_its_runs(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.delete(batch.id)
    assert store.batches.listed() == [] and set(store.statuses(RUNS).values()) == {"queued"}


# --- progress ----------------------------------------------------------------------------------------------


def request_paced(store: Store, runs: Sequence[str], visitor: str, **spec: object) -> Batch:
    """A batch of runs that take about as long as each other."""
    members = tuple(BatchMember(run, {"id": run, **spec}) for run in runs)
    batch = Batch("sweep", visitor, members)
    store.batches.request(batch, visitor)
    return batch


def test_the_time_left_counts_the_queue(store: Store) -> None:
    ann = request_paced(store, ["a0", "a1", "a2", "a3"], "ann", rounds=10)
    assert progress(store, ann.runs, 1).seconds_left is None  # nothing is known before the first run has ended
    end(store, "a0")  # in two seconds
    assert progress(store, ann.runs, 1).seconds_left == pytest.approx(6.0)
    assert progress(store, ann.runs, 3).seconds_left == pytest.approx(2.0)
    bob = request_paced(store, ["b0"], "bob", rounds=10)
    assert progress(store, bob.runs, 1).seconds_left == pytest.approx(2.0)  # the next turn is Bob's
    assert progress(store, ann.runs, 1).seconds_left == pytest.approx(8.0)
    state = progress(store, ann.runs, 1)
    assert (state.done, state.total) == (1, 4)


def test_runs_of_another_size_do_not_set_the_pace(store: Store) -> None:
    request_paced(store, ["a0"], "ann", rounds=10)
    end(store, "a0")
    bob = request_paced(store, ["b0"], "bob", rounds=99)
    assert progress(store, bob.runs, 1).seconds_left is None
    assert store.usual_seconds({"rounds": 10}) == 2.0 and store.usual_seconds({"rounds": 99}) is None


def test_an_instant_attack_does_not_set_the_pace_of_a_search(store: Store) -> None:
    members = [BatchMember("i0", {"attack": {"name": "analytic"}}), BatchMember("i1", {"attack": {"name": "analytic"}})]
    members += [BatchMember("s0", {"attack": {"name": "map", "iterations": 9}})]
    batch = Batch("leak grid", "", tuple(members))
    store.batches.request(batch)
    end(store, "i0")
    assert progress(store, ("i1",), 1).seconds_left == pytest.approx(2.0)
    assert progress(store, batch.runs, 1).seconds_left is None


def test_failed_members_count_as_done(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    lease = store.take(ProcessId.me(), 99, {"one"})
    assert lease
    store.append(lease, [Failed("broke", "Try again")])
    state = progress(store, batch.runs, 2)
    assert (state.done, state.statuses["one"]) == (1, "failed")
    assert store.batches.request(batch, "ann")["one"] == "queued"  # a new request tries it again


def test_a_thousand_runs_are_submitted_and_listed(store: Store) -> None:
    runs = [f"run-{number}" for number in range(1000)]
    batch = batch_of(runs)
    store.batches.request(batch, "ann")
    (listed,) = store.batches.listed()
    assert listed.runs == tuple(runs) and listed.counts(store.statuses(runs)) == {"queued": 1000}


@pytest.mark.parametrize(
    "table", ["batches", "members", "batch_requests", "run_requests", "visits", "served", "owners"]
)
@pytest.mark.parametrize("value", [None, 7, -1e300, "word", b"\xff\xfe", ""])
def test_a_damaged_row_raises_nothing_and_hides_no_other_batch(store: Store, table: str, value: object) -> None:
    damaged = batch_of(["one"])
    store.batches.request(damaged, "ann")
    store.owners._database.close()
    raw = open_raw(store.home.path)
    raw.execute("INSERT INTO owners VALUES ('picture/x', 'ann')")
    raw.execute("INSERT INTO served VALUES ('ann', 5)")
    store.submit("two", {"id": "two"}, visitor="ann")
    for column in [row[1] for row in raw.execute(f"PRAGMA table_info({table})").fetchall()]:
        raw.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,)) if value is not None else None
    whole = batch_of(["three"])
    store.batches.request(whole, "bob")
    assert whole.id in [batch.id for batch in store.batches.listed()]
    store.queue(), store.requesters(["one", "two"]), store.owners.drop_left(), store.visits.present()
    assert store.batches.withdraw(whole.id, "bob").cancelled == ("three",)
    assert progress(store, ("one", "two"), 1).total == 2


# --- what two readers found --------------------------------------------------------------------------------


def test_a_run_that_everyone_cancelled_by_name_ends(store: Store) -> None:
    """Both batches go on, and neither keeps the run that both visitors cancelled."""
    ann, bob = batch_of(["one", "two"]), batch_of(["one", "three"])
    store.batches.request(ann, "ann")
    store.batches.request(bob, "bob")
    assert store.withdraw(["one"], "ann").kept == ("one",)
    assert store.withdraw(["one"], "bob").cancelled == ("one",)
    assert store.statuses(["two", "three"]) == {"two": "queued", "three": "queued"}
    store.batches.request(ann, "ann")  # a new request wants it again
    assert store.status("one") == "queued" and store.requesters(["one"], wanting=True) == {"one": ["ann"]}


def test_a_cancel_by_name_withdraws_from_a_batch_whose_other_members_ended(store: Store) -> None:
    batch = batch_of(["one", "two"])
    store.batches.request(batch, "ann")
    end(store, "two")
    store.withdraw(["one"], "ann")
    assert not store.batches.wanted_by(batch.id, "ann")


def test_who_wanted_a_deleted_batch_wants_its_runs(store: Store) -> None:
    batch = batch_of(["one", "two"])
    for visitor in ("ann", "bob"):
        store.batches.request(batch, visitor)
    store.batches.delete(batch.id)
    other = batch_of(["one"])
    store.batches.request(other, "cy")
    assert store.batches.withdraw(other.id, "cy").kept == ("one",)
    store.withdraw(["one"], "ann")
    assert store.withdraw(["one"], "bob").cancelled == ("one",)


def test_a_batch_goes_with_its_last_run(store: Store) -> None:
    batch = batch_of(["one", "two"])
    store.batches.request(batch, "ann")
    store.delete("one")
    assert store.batches.find(batch.id)
    store.delete("two")
    assert store.batches.find(batch.id) is None


def test_requests_of_one_kind_are_told_apart(store: Store) -> None:
    store.batches.request(Batch("leak grid", "", batch_of().members), "ann")
    store.batches.request(Batch("cliff", "", batch_of(["one"]).members), "bob")
    assert store.requesters(["one"], kind="cliff") == {"one": ["bob"]}
    assert store.requesters(["one"]) == {"one": ["ann", "bob"]}


def interrupt(store: Store, run: str) -> None:
    lease = store.take(ProcessId.me(), 99, {run})
    assert lease
    store.release(lease)
    assert store.status(run) == "interrupted"


def test_an_interrupted_member_resumes_by_itself_three_times(store: Store) -> None:
    batch = batch_of(["one"])
    store.batches.request(batch, "ann")
    for _ in range(3):
        interrupt(store, "one")
        assert store.batches.resume_interrupted() == ["one"] and store.status("one") == "queued"
    interrupt(store, "one")
    assert store.batches.resume_interrupted() == [] and store.status("one") == "interrupted"
    store.batches.request(batch, "ann")  # a click counts from 0 again
    interrupt(store, "one")
    assert store.batches.resume_interrupted() == ["one"]


@pytest.mark.parametrize("who", ["withdrawn", "by name", "command", "single"])
def test_what_no_visitor_wants_is_not_resumed(store: Store, who: str) -> None:
    batch = batch_of(["one", "two"])
    visitor = store.visits.command() if who == "command" else "ann"
    if who == "single":
        store.submit("one", {"id": "one"}, visitor="ann")
    else:
        store.batches.request(batch, visitor)
    interrupt(store, "one")
    if who == "withdrawn":
        open_raw(store.home.path).execute("UPDATE batch_requests SET withdrawn = 1")
    if who == "by name":
        open_raw(store.home.path).execute("INSERT INTO run_requests VALUES ('one', 'ann', 1, 1)")
    assert store.batches.resume_interrupted() == []


def test_a_name_that_a_visitor_gave_stays(store: Store) -> None:
    batch = batch_of()
    store.batches.request(batch, "ann")
    store.batches.rename(batch.id, "my sweep")
    store.batches.request(batch, "ann")
    listed = store.batches.find(batch.id)
    assert listed and listed.title == "my sweep"


def test_an_attempt_that_resumed_counts_only_what_it_added(store: Store) -> None:
    """80 of 100 rounds took 800 s; a second after the resume there are 200 s left, not a quarter of a second."""
    batch = request_paced(store, ["one", "two"], "ann", rounds=100)
    lease = store.take(ProcessId.me(), 1, {"one"})
    assert lease
    store.append(lease, [Round(1, 100, 1), Round(81, 100, 1)])
    raw = open_raw(store.home.path)
    raw.execute("UPDATE events SET at = at - 800 WHERE number = 1")
    assert progress(store, ("one",), 1).seconds_left == pytest.approx(200, rel=0.02)
    raw.execute("UPDATE events SET at = at - 900")
    store.release(lease)
    raw.execute("UPDATE events SET attempt = 0")  # of the attempt before
    store.batches.request(batch, "ann")
    again = store.take(ProcessId.me(), 1, {"one"})
    assert again
    raw.execute("INSERT INTO events SELECT run, number + 100, ?, ? - 1, body FROM events", (again.attempt, time.time()))
    assert progress(store, ("one",), 1).seconds_left is None  # one second says nothing


def test_runs_of_unknown_size_say_nothing_about_each_other(store: Store) -> None:
    batch = batch_of(["one", "two"])
    store.batches.request(batch, "ann")
    open_raw(store.home.path).execute("UPDATE runs SET work = ''")  # as of version 1
    lease = store.take(ProcessId.me(), 1, {"one"})
    assert lease
    store.append(lease, [Round(1, 2, 1)])
    store.submit("long", {"rounds": 2000})
    open_raw(store.home.path).execute("UPDATE runs SET work = '' WHERE id = 'long'")
    assert progress(store, ("long",), 1).seconds_left is None


@pytest.mark.parametrize(
    "body",
    ['{"event":"step","what":"","fraction":"abc"}', '{"event":"pictured","iteration":%s,"of":1}' % ("9" * 400), "{}"],
)
def test_a_damaged_event_hides_no_progress(store: Store, body: str) -> None:
    store.batches.request(batch_of(["one"]), "ann")
    lease = store.take(ProcessId.me(), 1, {"one"})
    assert lease
    store.append(lease, [Round(1, 4, 1)])
    raw = open_raw(store.home.path)
    raw.execute("UPDATE events SET body = ?", (body,))
    raw.execute("UPDATE batches SET at = 9e999")
    raw.execute("UPDATE runs SET seconds = 9e999")
    assert progress(store, ("one",), 1).seconds_left is None
    assert store.batches.listed()[0].json()["at"] == 0.0
