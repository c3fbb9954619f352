"""The store: requests, events, and the status of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadInput, Damaged, HomeFull, LeaseLost, UnknownName
from engine.events import KINDS, Cancelled, Event, Failed, Finished, Kept, Round, Started, decode, encode
from engine.jobs import payloads
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.status import QUERY_LIMIT
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw

CURRENT = ProcessId.me()
DEAD = ProcessId(CURRENT.place, 2**22 + 1, "1")  # no such process


def take_lease(store: Store, owner: ProcessId = CURRENT) -> Lease:
    lease = store.take(owner, 8)
    assert lease
    return lease


def test_the_status_of_a_run_follows_its_events(store: Store) -> None:
    assert store.submit("one", {"seed": 1}) == "queued"
    assert store.status("one") == "queued"
    lease = take_lease(store)
    assert store.status("one") == "running"
    store.append(lease, [Started("one", {}, {}), Round(1, 2, 3)])
    assert store.status("one") == "running"
    store.append(lease, [Finished(2, 0.5)])
    assert store.status("one") == "finished"


def test_a_run_submitted_twice_is_the_same_run(store: Store) -> None:
    store.submit("one", {"seed": 1})
    store.submit("one", {"seed": 1})
    assert store.queue() == ["one"]
    lease = take_lease(store)
    assert store.submit("one", {"seed": 1}) == "running"
    store.append(lease, [Finished(1, 0.1)])
    assert store.submit("one", {"seed": 1}) == "finished"
    assert store.take(CURRENT, 8) is None
    assert store.run("one").attempt == 1


@pytest.mark.parametrize("status", ["failed", "cancelled", "interrupted"])
def test_a_run_that_did_not_finish_gets_a_new_attempt(status: str, store: Store) -> None:
    store.submit("one", {"seed": 1}, {"device": "cpu"})
    lease = take_lease(store)
    store.append(lease, [Started("one", {}, {})])
    ends: dict[str, Callable[[], Any]] = {
        "failed": lambda: store.append(lease, [Failed("it broke")]),
        "cancelled": lambda: store.append(lease, [Cancelled(1)]),
        "interrupted": lambda: store.release(lease),
    }
    if status == "cancelled":
        store.cancel("one")
    ends[status]()
    assert store.status("one") == status
    assert store.take(CURRENT, 8) is None
    assert store.submit("one", {"seed": 1}, {"device": "cuda"}) == "queued"
    assert store.status("one") == "queued"
    again = take_lease(store)
    assert (again.spec, again.options) == ({"seed": 1}, {"device": "cuda"})
    assert store.status("one") == "running"
    assert store.run("one").attempt == 2


def test_a_run_of_a_dead_owner_process_is_interrupted(store: Store) -> None:
    store.submit("one", {})
    take_lease(store, DEAD)
    assert store.status("one") == "interrupted"
    assert store.submit("one", {}) == "queued"
    assert take_lease(store).run == "one"


def test_a_run_is_cancelled_at_the_first_click(store: Store) -> None:
    store.submit("waiting", {})
    assert store.cancel("waiting") == "cancelled"
    assert store.queue() == []
    assert store.take(CURRENT, 8) is None
    store.submit("working", {})
    lease = take_lease(store)
    assert not store.stop_requested(lease)
    assert store.cancel("working") == "cancelled"
    assert store.stop_requested(lease)


def test_cancelled_outranks_failed_and_finished_outranks_cancelled(store: Store) -> None:
    for run, end, status in (("a", Failed("broke"), "cancelled"), ("b", Finished(1, 0.1), "finished")):
        store.submit(run, {})
        lease = take_lease(store)
        store.cancel(run)
        store.append(lease, [end])
        assert store.status(run) == status


def test_a_run_that_has_ended_cannot_be_cancelled(store: Store) -> None:
    store.submit("one", {})
    store.append(take_lease(store), [Failed("it broke")])
    assert store.cancel("one") == "failed"


def test_a_cancel_does_not_apply_to_the_next_attempt(store: Store) -> None:
    store.submit("one", {})
    old = take_lease(store)
    store.cancel("one")
    assert store.submit("one", {}) == "queued"
    assert store.take(CURRENT, 8) is None  # its worker has not released the lease yet
    assert store.status("one") == "queued"
    store.append(old, [Cancelled(0)])
    assert store.status("one") == "queued"
    assert not store.stop_requested(take_lease(store))


def test_the_queue_keeps_its_order_and_gives_places(store: Store) -> None:
    for run in ("c", "a", "b"):
        store.submit(run, {})
    assert store.queue() == ["c", "a", "b"]
    assert [(run.id, run.place) for run in store.runs()] == [("b", 3), ("a", 2), ("c", 1)]
    assert take_lease(store).run == "c"
    assert store.run("b").place == 2
    assert store.run("c").place is None


def test_a_listed_run_has_everything_a_page_shows(store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1}, {"threads": 2})
    lease = take_lease(store)
    store.append(lease, [Started("one", {}, {}), Round(1, 9, 3), Round(2, 9, 3, 0.5), Kept("truth", "t", 2)])
    payloads.write(store.home, "one", "t", {"x": np.zeros(1000)})
    (run,) = store.runs()
    assert (run.id, run.status, run.spec, run.options) == ("one", "running", {"seed": 1}, {"threads": 2})
    assert (run.attempt, run.round, run.events) == (1, 2, 4)
    bodies = sum(length for (length,) in open_raw(home).execute("SELECT LENGTH(body) FROM events"))
    assert run.bytes == bodies + store.home.payload("one", "t").stat().st_size
    assert store.used() >= run.bytes
    assert run.json()["id"] == "one"


def test_events_are_read_in_order_and_from_any_number(store: Store) -> None:
    store.submit("one", {})
    lease = take_lease(store)
    events: list[Event] = [Started("one", {"seed": 1}, {}), *(Round(number, 300, 10) for number in range(1, 2500))]
    store.append(lease, events[:1])
    store.append(lease, events[1:])
    numbered = list(enumerate(events, start=1))
    assert store.events("one") == numbered
    assert store.events("one", after=2498) == numbered[2498:]
    assert store.events("one", after=2500) == []
    assert store.bodies("one", after=2499) == [(2500, encode(events[-1]))]


def test_ten_thousand_events_in_one_transaction(store: Store) -> None:
    store.submit("one", {})
    store.append(take_lease(store), [Round(number, 10_000, 1) for number in range(10_000)])
    assert store.run("one").events == len(store.events("one")) == 10_000


def test_several_runs_are_submitted_together_or_none(store: Store) -> None:
    store.submit("two", {"b": 1})
    assert store.submit_all({"one": {"a": 1}, "two": {"b": 1}, "three": {}}) == dict.fromkeys(
        ("one", "two", "three"), "queued"
    )
    assert store.queue() == ["two", "one", "three"]
    assert store.statuses(["three", "unknown", "one"]) == {"three": "queued", "one": "queued"}
    unknown = [f"run-{number}" for number in range(2 * QUERY_LIMIT)]
    assert store.statuses([*unknown, "one"]) == {"one": "queued"}
    with pytest.raises(BadInput):
        store.submit_all({"four": {}, "../five": {}})
    with pytest.raises(UnknownName):
        store.status("four")
    store.delete("one")
    assert store.statuses(["one"]) == {}


NAMES = st.text("abc-é\n\"'\\", max_size=5)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.none())
JSON: st.SearchStrategy[Any] = st.dictionaries(NAMES, st.one_of(NUMBERS, NAMES, st.booleans()), max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": NAMES,
    "int": st.integers(0, 2**40),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "Mapping[str, Any]": JSON,
    "Mapping[str, float]": st.dictionaries(NAMES, st.floats(-9, 9), max_size=3),
    "float | None": st.one_of(st.none(), st.floats(-9, 9)),
    "int | None": st.one_of(st.none(), st.integers(0, 9)),
    "tuple[float, ...]": st.lists(st.floats(-9, 9), max_size=5).map(tuple),
    "tuple[int, ...]": st.lists(st.integers(0, 9), max_size=5).map(tuple),
    "tuple[str, ...]": st.lists(NAMES, max_size=5).map(tuple),
    "Mapping[str, tuple[float, ...]]": st.dictionaries(NAMES, st.just((1.0, -2.5)), max_size=3),
    "Mapping[str, tuple[int, ...]]": st.dictionaries(NAMES, st.just((1, 9)), max_size=3),
    "Mapping[str, tuple[tuple[float, ...], ...]]": st.dictionaries(NAMES, st.just(((4.0,), (1.5, -2.5))), max_size=3),
    "tuple[float, float]": st.just((0.25, 0.75)),
    "tuple[tuple[float, float], ...]": st.just(((0.5, 0.75), (1.0, 1.0))),
    "tuple[ByClass, ByClass]": st.just((((0.5, None),), ())),
    "tuple[Mapping[str, Any], ...]": st.lists(JSON, max_size=3).map(tuple),
}


def events_of_kind(kind: type[Event]) -> st.SearchStrategy[Event]:
    values = {field.name: VALUES[str(field.type)] for field in fields(kind) if field.name != "payload"}
    return st.builds(kind, **values)


EVENTS = st.one_of([events_of_kind(kind) for kind in KINDS.values()])


@pytest.mark.slow
@given(events=st.lists(EVENTS, max_size=6))
def test_any_event_is_read_as_it_was_written(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert [decode(encode(event)) for event in events] == events
    store = Store(tmp_path_factory.getbasetemp() / "events")
    store.submit("one", {})
    store.append(take_lease(store), events)
    assert [event for _, event in store.events("one")] == events
    store.cancel("one")
    for lease in open_raw(store.home.path).execute("SELECT token FROM leases").fetchall():
        open_raw(store.home.path).execute("DELETE FROM leases WHERE token = ?", lease)
    store.delete("one")


def test_numbers_that_are_not_finite_are_stored_as_null(store: Store) -> None:
    store.submit("one", {})
    store.append(take_lease(store), [Round(1, 2, 3, numbers={"loss": float("nan"), "norm": float("inf")})])
    assert store.bodies("one")[0][1]["numbers"] == {"loss": None, "norm": None}


def test_an_unreadable_event_is_reported_with_its_run(store: Store, home: Path) -> None:
    store.submit("one", {})
    store.append(take_lease(store), [Round(1, 2, 3), Round(2, 2, 3)])
    open_raw(home).execute("UPDATE events SET body = '{cut' WHERE number = 1")
    with pytest.raises(Damaged, match=r"leaklens\.db: an event of run one cannot be read"):
        store.events("one")


@pytest.mark.parametrize("column", ["spec", "options"])
def test_one_damaged_run_does_not_hide_the_others(column: str, store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1}, {"threads": 1})
    store.submit("two", {"seed": 2})
    open_raw(home).execute(f"UPDATE runs SET {column} = '{{cut' WHERE id = 'one'")
    assert {run.id: run.spec.get("seed") for run in store.runs()} == {"one": None if column == "spec" else 1, "two": 2}
    assert {run.id: run.status for run in store.runs()} == {"one": "damaged", "two": "queued"}
    assert store.run("two").place == 1
    with pytest.raises(Damaged, match=r"run one: its row in the store is damaged\. Delete it, then run it again"):
        store.run("one")
    store.delete("one")
    assert [run.id for run in store.runs()] == ["two"]


def test_a_damaged_spec_is_repaired_when_submitted_again(store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1})
    store.cancel("one")
    open_raw(home).execute("UPDATE runs SET spec = '{cut'")
    store.submit("one", {"seed": 1})
    assert take_lease(store).spec == {"seed": 1}


@pytest.mark.parametrize("column", ["attempt", "taken", "told", "text", "edition"])
@pytest.mark.parametrize("value", ["'x'", "2.5", "-1", "x'ff00'"])
def test_c01_a_damaged_column_is_listed_deleted_and_requested_again(
    column: str, value: str, store: Store, home: Path
) -> None:
    """A text in place of a number ended every list with a TypeError."""
    if (column, value) in (("edition", "'x'"), ("edition", "2.5"), ("edition", "-1")):
        return  # an edition is any text, and the column makes text of a number
    store.submit("one", {"seed": 1})
    store.append(take_lease(store), [Round(1, 2, 3), Finished(1, 0.1)])
    store.submit("two", {"seed": 2})
    open_raw(home).execute(f"UPDATE runs SET {column} = {value} WHERE id = 'one'")
    assert {run.id: run.status for run in store.runs()} == {"one": "damaged", "two": "queued"}
    assert store.queue() == ["two"] and store.statuses(["one", "two"]) == {"one": "damaged", "two": "queued"}
    assert store.cancel("one") == "damaged"
    assert store.submit("one", {"seed": 1}) == "queued"
    assert store.events("one") == [] and store.run("one").events == 0
    open_raw(home).execute(f"UPDATE runs SET {column} = {value} WHERE id = 'one'")
    store.delete("one")
    assert [run.id for run in store.runs()] == ["two"]


def test_c01_a_text_of_damaged_bytes_hides_no_other_run(store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1})
    store.append(take_lease(store), [Round(1, 2, 3)])
    store.submit("two", {"seed": 2})
    open_raw(home).execute("UPDATE events SET body = CAST(x'7b2261223a22fffe22' AS TEXT) WHERE number = 1")
    open_raw(home).execute("UPDATE runs SET options = CAST(x'7bfffe7d' AS TEXT) WHERE id = 'one'")
    assert {run.id: run.status for run in store.runs()} == {"one": "damaged", "two": "queued"}
    with pytest.raises(Damaged):
        store.events("one")


def test_demand_counts_running_and_waiting_runs(store: Store, home: Path) -> None:
    assert store.demand() == 0
    store.submit("a", {})
    store.submit("b", {})
    assert store.demand() == 2
    lease = take_lease(store)
    assert store.demand() == 2
    store.append(lease, [Finished(1, 0.1)])
    assert store.demand() == 1
    take_lease(store, DEAD)
    assert store.demand() == 0


def test_a_process_that_lost_the_lease_writes_nothing(store: Store) -> None:
    store.submit("one", {})
    lost = take_lease(store, DEAD)
    store.submit("one", {})
    current = take_lease(store)
    with pytest.raises(LeaseLost):
        store.append(lost, [Round(1, 2, 3)])
    with pytest.raises(LeaseLost):
        store.renew(lost)
    with pytest.raises(LeaseLost):
        store.rewind(lost)
    store.release(lost)
    store.append(current, [Round(1, 2, 3)])
    assert store.status("one") == "running"
    assert len(store.events("one")) == 1


@pytest.mark.parametrize("method", ["status", "cancel", "delete", "events", "run"])
def test_an_unknown_run_is_refused_by_name(method: str, store: Store) -> None:
    with pytest.raises(UnknownName, match="run: no unknown"):
        getattr(store, method)("unknown")


@pytest.mark.parametrize("run", ["../../etc", "", "a b", "a/b"])
def test_an_id_that_is_no_file_name_is_refused(run: str, store: Store) -> None:
    with pytest.raises(BadInput):
        store.submit(run, {})


def test_a_full_home_takes_no_new_runs_and_shows_the_old_ones(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.submit("one", {})
    store.append(take_lease(store), [Finished(1, 0.1)])
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
    with pytest.raises(HomeFull, match="Delete runs"):
        store.submit("two", {})
    assert store.submit("one", {}) == "finished"
    assert [run.id for run in store.runs()] == ["one"]
    store.delete("one")
    assert store.runs() == []


def test_many_threads_share_one_store(store: Store) -> None:
    errors: list[Exception] = []

    def submit_many(number: int) -> None:
        try:
            for seed in range(10):
                store.submit(f"run-{number}-{seed}", {"seed": seed})
                assert store.status(f"run-{number}-{seed}") == "queued"
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=submit_many, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.queue()) == 80
