"""The store: what is asked, what is told, and where a run stands."""

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
from engine.jobs.status import AT_ONCE
from engine.jobs.store import Store
from tests.engine.jobs.test_database import raw

ME = ProcessId.me()
GONE = ProcessId(ME.place, 2**22 + 1, "1")  # no such process


def taken(store: Store, holder: ProcessId = ME) -> Lease:
    lease = store.take(holder, 8)
    assert lease
    return lease


def test_a_run_stands_where_its_story_is(store: Store) -> None:
    assert store.submit("one", {"seed": 1}) == "queued"
    assert store.status("one") == "queued"
    lease = taken(store)
    assert store.status("one") == "running"
    store.append(lease, [Started("one", {}, {}), Round(1, 2, 3)])
    assert store.status("one") == "running"
    store.append(lease, [Finished(2, 0.5)])
    assert store.status("one") == "finished"


def test_asked_twice_it_is_the_same_run(store: Store) -> None:
    store.submit("one", {"seed": 1})
    store.submit("one", {"seed": 1})
    assert store.queue() == ["one"]
    lease = taken(store)
    assert store.submit("one", {"seed": 1}) == "running"
    store.append(lease, [Finished(1, 0.1)])
    assert store.submit("one", {"seed": 1}) == "finished"
    assert store.take(ME, 8) is None
    assert store.run("one").attempt == 1


@pytest.mark.parametrize("how", ["failed", "cancelled", "interrupted"])
def test_what_stopped_on_the_way_begins_a_new_attempt(how: str, store: Store) -> None:
    store.submit("one", {"seed": 1}, {"device": "cpu"})
    lease = taken(store)
    store.append(lease, [Started("one", {}, {})])
    ends: dict[str, Callable[[], Any]] = {
        "failed": lambda: store.append(lease, [Failed("it broke")]),
        "cancelled": lambda: store.append(lease, [Cancelled(1)]),
        "interrupted": lambda: store.release(lease),
    }
    if how == "cancelled":
        store.cancel("one")
    ends[how]()
    assert store.status("one") == how
    assert store.take(ME, 8) is None
    assert store.submit("one", {"seed": 1}, {"device": "cuda"}) == "queued"
    assert store.status("one") == "queued"
    again = taken(store)
    assert (again.spec, again.options) == ({"seed": 1}, {"device": "cuda"})
    assert store.status("one") == "running"
    assert store.run("one").attempt == 2


def test_a_holder_that_died_leaves_an_interrupted_run(store: Store) -> None:
    store.submit("one", {})
    taken(store, GONE)
    assert store.status("one") == "interrupted"
    assert store.submit("one", {}) == "queued"
    assert taken(store).run == "one"


def test_cancelled_at_the_first_click(store: Store) -> None:
    store.submit("waiting", {})
    assert store.cancel("waiting") == "cancelled"
    assert store.queue() == []
    assert store.take(ME, 8) is None
    store.submit("working", {})
    lease = taken(store)
    assert not store.unwanted(lease)
    assert store.cancel("working") == "cancelled"
    assert store.unwanted(lease)


def test_cancelled_wins_over_failed_and_finished_over_cancelled(store: Store) -> None:
    for run, end, status in (("a", Failed("broke"), "cancelled"), ("b", Finished(1, 0.1), "finished")):
        store.submit(run, {})
        lease = taken(store)
        store.cancel(run)
        store.append(lease, [end])
        assert store.status(run) == status


def test_what_has_ended_cannot_be_cancelled_any_more(store: Store) -> None:
    store.submit("one", {})
    store.append(taken(store), [Failed("it broke")])
    assert store.cancel("one") == "failed"


def test_a_cancel_does_not_reach_the_next_attempt(store: Store) -> None:
    store.submit("one", {})
    old = taken(store)
    store.cancel("one")
    assert store.submit("one", {}) == "queued"
    assert store.take(ME, 8) is None  # its worker has not let go yet
    assert store.status("one") == "queued"
    store.append(old, [Cancelled(0)])
    assert store.status("one") == "queued"
    assert not store.unwanted(taken(store))


def test_the_queue_keeps_its_order_and_says_places(store: Store) -> None:
    for run in ("c", "a", "b"):
        store.submit(run, {})
    assert store.queue() == ["c", "a", "b"]
    assert [(run.id, run.place) for run in store.runs()] == [("b", 3), ("a", 2), ("c", 1)]
    assert taken(store).run == "c"
    assert store.run("b").place == 2
    assert store.run("c").place is None


def test_a_list_says_what_a_page_needs(store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1}, {"threads": 2})
    lease = taken(store)
    store.append(lease, [Started("one", {}, {}), Round(1, 9, 3), Round(2, 9, 3, 0.5), Kept("truth", "t", 2)])
    payloads.write(store.home, "one", "t", {"x": np.zeros(1000)})
    (run,) = store.runs()
    assert (run.id, run.status, run.spec, run.options) == ("one", "running", {"seed": 1}, {"threads": 2})
    assert (run.attempt, run.round, run.events) == (1, 2, 4)
    bodies = sum(length for (length,) in raw(home).execute("SELECT LENGTH(body) FROM events"))
    assert run.bytes == bodies + store.home.payload("one", "t").stat().st_size
    assert store.used() >= run.bytes
    assert run.json()["id"] == "one"


def test_events_come_back_in_order_and_from_any_number(store: Store) -> None:
    store.submit("one", {})
    lease = taken(store)
    told: list[Event] = [Started("one", {"seed": 1}, {}), *(Round(number, 300, 10) for number in range(1, 2500))]
    store.append(lease, told[:1])
    store.append(lease, told[1:])
    assert store.events("one") == list(enumerate(told, start=1))
    assert store.events("one", after=2498) == list(enumerate(told, start=1))[2498:]
    assert store.events("one", after=2500) == []
    assert store.bodies("one", after=2499) == [(2500, encode(told[-1]))]


def test_ten_thousand_events_in_one_stroke(store: Store) -> None:
    store.submit("one", {})
    store.append(taken(store), [Round(number, 10_000, 1) for number in range(10_000)])
    assert store.run("one").events == len(store.events("one")) == 10_000


def test_several_are_asked_for_at_once_or_none(store: Store) -> None:
    store.submit("two", {"b": 1})
    assert store.submit_all({"one": {"a": 1}, "two": {"b": 1}, "three": {}}) == dict.fromkeys(
        ("one", "two", "three"), "queued"
    )
    assert store.queue() == ["two", "one", "three"]
    assert store.statuses(["three", "nobody", "one"]) == {"three": "queued", "one": "queued"}
    many = [f"run-{number}" for number in range(2 * AT_ONCE)]
    assert store.statuses([*many, "one"]) == {"one": "queued"}
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
    "tuple[ByClass, ByClass]": st.just((((0.5, None),), ())),
    "tuple[Mapping[str, Any], ...]": st.lists(JSON, max_size=3).map(tuple),
}
EVENTS = st.one_of(
    [
        st.builds(kind, **{one.name: VALUES[str(one.type)] for one in fields(kind) if one.name != "payload"})
        for kind in KINDS.values()
    ]
)


@given(told=st.lists(EVENTS, max_size=6))
def test_any_event_comes_back_as_it_was_told(told: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert [decode(encode(event)) for event in told] == told
    store = Store(tmp_path_factory.getbasetemp() / "told")
    store.submit("one", {})
    store.append(taken(store), told)
    assert [event for _, event in store.events("one")] == told
    store.cancel("one")
    for lease in raw(store.home.path).execute("SELECT token FROM leases").fetchall():
        raw(store.home.path).execute("DELETE FROM leases WHERE token = ?", lease)
    store.delete("one")


def test_numbers_that_are_not_finite_are_stored_as_nothing(store: Store) -> None:
    store.submit("one", {})
    store.append(taken(store), [Round(1, 2, 3, numbers={"loss": float("nan"), "norm": float("inf")})])
    assert store.bodies("one")[0][1]["numbers"] == {"loss": None, "norm": None}


def test_an_event_that_cannot_be_read_is_named(store: Store, home: Path) -> None:
    store.submit("one", {})
    store.append(taken(store), [Round(1, 2, 3), Round(2, 2, 3)])
    raw(home).execute("UPDATE events SET body = '{cut' WHERE number = 1")
    with pytest.raises(Damaged, match=r"leaklens\.db: an event of run one cannot be read"):
        store.events("one")


@pytest.mark.parametrize("column", ["spec", "options"])
def test_one_damaged_run_does_not_hide_the_others(column: str, store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1}, {"threads": 1})
    store.submit("two", {"seed": 2})
    raw(home).execute(f"UPDATE runs SET {column} = '{{cut' WHERE id = 'one'")
    assert {run.id: run.spec.get("seed") for run in store.runs()} == {"one": None if column == "spec" else 1, "two": 2}
    assert store.run("two").place == 2
    with pytest.raises(Damaged, match=r"run one: its question cannot be read\. Delete it, then ask again"):
        store.run("one")
    store.delete("one")
    assert [run.id for run in store.runs()] == ["two"]


def test_asked_again_a_damaged_question_is_whole_again(store: Store, home: Path) -> None:
    store.submit("one", {"seed": 1})
    store.cancel("one")
    raw(home).execute("UPDATE runs SET spec = '{cut'")
    store.submit("one", {"seed": 1})
    assert taken(store).spec == {"seed": 1}


def test_demand_is_what_runs_and_what_waits(store: Store, home: Path) -> None:
    assert store.demand() == 0
    store.submit("a", {})
    store.submit("b", {})
    assert store.demand() == 2
    lease = taken(store)
    assert store.demand() == 2
    store.append(lease, [Finished(1, 0.1)])
    assert store.demand() == 1
    taken(store, GONE)
    assert store.demand() == 0


def test_whoever_lost_the_lease_writes_nothing(store: Store) -> None:
    store.submit("one", {})
    lost = taken(store, GONE)
    store.submit("one", {})
    held = taken(store)
    for act in (lambda: store.append(lost, [Round(1, 2, 3)]), lambda: store.renew(lost), lambda: store.rewind(lost)):
        with pytest.raises(LeaseLost):
            act()
    store.release(lost)
    store.append(held, [Round(1, 2, 3)])
    assert store.status("one") == "running"
    assert len(store.events("one")) == 1


@pytest.mark.parametrize("ask", ["status", "cancel", "delete", "events", "run"])
def test_an_unknown_run_is_said_to_be_unknown(ask: str, store: Store) -> None:
    with pytest.raises(UnknownName, match="run: no nobody"):
        getattr(store, ask)("nobody")


@pytest.mark.parametrize("run", ["../../etc", "", "a b", "a/b"])
def test_an_id_that_is_no_file_name_is_refused(run: str, store: Store) -> None:
    with pytest.raises(BadInput):
        store.submit(run, {})


def test_a_full_home_takes_no_new_questions_and_shows_the_old(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.submit("one", {})
    store.append(taken(store), [Finished(1, 0.1)])
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
    with pytest.raises(HomeFull, match="Delete runs"):
        store.submit("two", {})
    assert store.submit("one", {}) == "finished"
    assert [run.id for run in store.runs()] == ["one"]
    store.delete("one")
    assert store.runs() == []


def test_many_threads_share_one_store(store: Store) -> None:
    wrong: list[Exception] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                store.submit(f"run-{number}-{turn}", {"seed": turn})
                assert store.status(f"run-{number}-{turn}") == "queued"
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(store.queue()) == 80
