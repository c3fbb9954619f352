"""The fair queue: no visitor starts two runs while another one waits and has no running run."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Failed, Finished, Started
from engine.jobs.fair_queue import WaitingRun, fair_order
from engine.jobs.leases import Lease
from engine.jobs.store import Store
from tests.engine.jobs.test_database import open_raw
from tests.engine.jobs.test_store import CURRENT, DEAD, take_lease

VISITOR = st.sampled_from(["ann", "bob", "cy", ""])


def submit_runs(store: Store, *runs: str) -> None:
    """Submit runs that are named after their visitor: `ann-1`. `-1` becomes the run `1` without a visitor."""
    for run in runs:
        visitor = run.rpartition("-")[0]
        if visitor:
            store.submit(run, {}, {}, visitor)
        else:
            store.submit(run.strip("-"), {}, {})


def start_run(store: Store) -> Lease:
    lease = take_lease(store)
    store.append(lease, [Started(lease.run, {}, {})])
    return lease


def run_next(store: Store, count: int) -> list[str]:
    """Take and finish the next runs, one after another, and return their ids."""
    runs = []
    for _ in range(count):
        lease = start_run(store)
        runs.append(lease.run)
        store.append(lease, [Finished(1, 0.1)])
    return runs


# --- the rule ------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(VISITOR, st.integers(1, 5), st.integers(0, 6)), max_size=20), st.integers(1, 4))
def test_no_visitor_starts_two_runs_while_another_waits_without_a_running_run(
    requests: list[tuple[str, int, int]], slots: int
) -> None:
    """Each request has a visitor, a length in ticks, and the tick at which it is submitted."""
    waiting: list[WaitingRun] = []
    running: list[tuple[str, int]] = []  # visitor, ticks left
    last: dict[str, float] = {}
    overtaken: dict[str, Counter[str]] = {}
    for tick in range(7 + sum(length for _, length, _ in requests)):
        waiting += [
            WaitingRun(str(number), (visitor,)) for number, (visitor, _, at) in enumerate(requests) if at == tick
        ]
        running = [(visitor, left - 1) for visitor, left in running if left > 1]
        while waiting and len(running) < slots:
            busy = Counter(visitor for visitor, _ in running)
            run = fair_order(waiting, busy, last)[0]
            served, length, _ = requests[int(run)]
            without_run = {each.visitors[0] for each in waiting if not busy[each.visitors[0]]} - {served}
            overtaken = {visitor: overtaken.get(visitor, Counter()) + Counter([served]) for visitor in without_run}
            for counts in overtaken.values():
                assert all(times == 1 for times in counts.values())
            waiting.remove(WaitingRun(run, (served,)))
            running.append((served, length))
            last[served] = max(last.values(), default=0) + 1
    assert not waiting


@given(
    st.lists(VISITOR, max_size=20),
    st.dictionaries(VISITOR, st.integers(0, 3)),
    st.dictionaries(VISITOR, st.floats(0, 9)),
)
def test_every_run_has_a_place_and_each_visitor_keeps_the_own_order(
    visitors: list[str], busy: dict[str, int], last: dict[str, float]
) -> None:
    waiting = [WaitingRun(f"run-{number}", (visitor,)) for number, visitor in enumerate(visitors)]
    order = fair_order(waiting, busy, last)
    assert sorted(order) == sorted(each.run for each in waiting)
    for visitor in set(visitors):
        own = [each.run for each in waiting if each.visitors == (visitor,)]
        assert [run for run in order if run in own] == own


# --- in the store --------------------------------------------------------------------------------------------------


def test_a_visitor_with_many_runs_delays_another_by_one_run_only(store: Store) -> None:
    submit_runs(store, *(f"ann-{number}" for number in range(20)))
    first = start_run(store)
    submit_runs(store, "bob-1", "bob-2")
    assert store.queue()[:5] == ["bob-1", "ann-1", "bob-2", "ann-2", "ann-3"]
    store.append(first, [Finished(1, 0.1)])
    assert run_next(store, 5) == ["bob-1", "ann-1", "bob-2", "ann-2", "ann-3"]


def test_a_visitor_who_submits_again_and_again_alternates_with_the_others(store: Store) -> None:
    submit_runs(store, *(f"ann-{number}" for number in range(9)))
    order = []
    for number in range(4):
        submit_runs(store, f"bob-{number}")
        order += run_next(store, 2)
    assert order == ["ann-0", "bob-0", "ann-1", "bob-1", "ann-2", "bob-2", "ann-3", "bob-3"]


def test_a_visitor_without_a_running_run_comes_before_one_served_long_ago(store: Store) -> None:
    submit_runs(store, "ann-1")
    start_run(store)
    submit_runs(store, "bob-1")
    store.append(start_run(store), [Failed("broke")])
    submit_runs(store, "ann-2", "bob-2")
    assert store.queue() == ["bob-2", "ann-2"]
    assert [take_lease(store).run, take_lease(store).run] == ["bob-2", "ann-2"]


def test_a_run_of_a_dead_owner_process_does_not_count_as_running(store: Store) -> None:
    submit_runs(store, "ann-1")
    take_lease(store, DEAD)
    submit_runs(store, "bob-1")
    start_run(store)
    submit_runs(store, "bob-2", "ann-2")
    assert take_lease(store).run == "ann-2"


def test_runs_without_a_visitor_count_as_those_of_one_visitor(store: Store) -> None:
    submit_runs(store, "-1", "-2", "-3")
    start_run(store)
    submit_runs(store, "ann-1")
    assert store.queue() == ["ann-1", "2", "3"]
    assert store.run("ann-1").place == 1
    assert {run.id: run.place for run in store.runs()} == {"1": None, "ann-1": 1, "2": 2, "3": 3}


def test_a_supervisor_limited_to_some_runs_does_not_wait_for_others(store: Store) -> None:
    submit_runs(store, "ann-1", "bob-1", "ann-2")
    lease = store.take(CURRENT, 8, only={"ann-2"})
    assert lease
    assert lease.run == "ann-2"


@pytest.mark.parametrize("options", ["no json", "[]", '{"visitor": 7}', '{"visitor": null}'])
def test_unreadable_options_block_no_other_run(options: str, store: Store) -> None:
    submit_runs(store, "odd-1", "ann-1")
    open_raw(store.home.path).execute("UPDATE runs SET options = ? WHERE id = 'odd-1'", (options,))
    waiting = ["ann-1", "odd-1"] if options.startswith("{") else ["ann-1"]  # what is no object is damaged
    assert sorted(store.queue()) == waiting
    assert take_lease(store)


# --- instant attacks ---------------------------------------------------------------------------------------

INSTANT = {"attack": {"name": "analytic"}}
SLOW = {"attack": {"name": "map", "iterations": 9}}


def test_instant_attacks_of_everyone_go_before_anyones_slow_work(store: Store) -> None:
    for run, spec, visitor in (("s1", SLOW, "ann"), ("s2", {}, "ann"), ("i1", INSTANT, "bob"), ("i2", INSTANT, "ann")):
        store.submit(run, spec, visitor=visitor)
    assert set(store.queue()[:2]) == {"i1", "i2"} and store.queue()[2:] == ["s1", "s2"]


def test_one_instant_attack_may_use_one_slot_more(store: Store) -> None:
    for run, spec in (("s1", SLOW), ("s2", SLOW), ("i1", INSTANT), ("i2", INSTANT)):
        store.submit(run, spec)
    store.take(CURRENT, 1, {"s1"})
    express = store.take(CURRENT, 1)
    assert express and express.run in ("i1", "i2")
    assert store.take(CURRENT, 1) is None  # one, and no slow run
    store.append(express, [Finished(1, 0.1)])
    last = store.take(CURRENT, 1)
    assert last and last.run in ("i1", "i2")
    store.append(last, [Finished(1, 0.1)])
    assert store.take(CURRENT, 1) is None


def test_a_stream_of_instant_attacks_does_not_keep_a_slow_run_waiting_for_ever(store: Store) -> None:
    store.submit("slow", SLOW, visitor="ann")
    for number in range(60):
        store.submit(f"i{number}", INSTANT, visitor="bob")
        lease = take_lease(store)
        if lease.run == "slow":
            assert number >= 10
            return
        store.append(lease, [Finished(1, 0.1)])
    raise AssertionError("the slow run never started")


def test_a_visitor_who_cancelled_has_no_turn(store: Store) -> None:
    for number in range(3):
        store.submit(f"run-{number}", {}, visitor="ann")
        store.submit(f"run-{number}", {}, visitor="bob")
    store.submit("cy-1", {}, visitor="cy")
    store.withdraw(["run-0", "run-1", "run-2"], "bob")
    take_lease(store)
    assert store.queue()[0] == "cy-1"
