"""Fair turns: nobody is served twice while somebody else waits with nothing at work."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Failed, Finished, Started
from engine.jobs.fair_queue import turns
from engine.jobs.leases import Lease
from engine.jobs.store import Store
from tests.engine.jobs.test_database import raw
from tests.engine.jobs.test_store import GONE, ME, taken

VISITOR = st.sampled_from(["ann", "bob", "cy", ""])


def ask(store: Store, *runs: str) -> None:
    """Questions named after their visitor: `ann-1`; `-1` is nobody's."""
    for run in runs:
        who = run.rpartition("-")[0]
        store.submit(run.strip("-") if not who else run, {}, {"visitor": who} if who else {})


def begun(store: Store) -> Lease:
    lease = taken(store)
    store.append(lease, [Started(lease.run, {}, {})])
    return lease


def served(store: Store, count: int) -> list[str]:
    """The next runs, one after the other."""
    runs = []
    for _ in range(count):
        lease = begun(store)
        runs.append(lease.run)
        store.append(lease, [Finished(1, 0.1)])
    return runs


# --- the law -------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(VISITOR, st.integers(1, 5), st.integers(0, 6)), max_size=20), st.integers(1, 4))
def test_nobody_is_served_twice_while_somebody_waits_with_nothing_at_work(
    asked: list[tuple[str, int, int]], slots: int
) -> None:
    waiting: list[tuple[str, str]] = []
    at_work: list[tuple[str, int]] = []  # visitor, ticks left
    last: dict[str, float] = {}
    overtaken: dict[str, Counter[str]] = {}
    for tick in range(7 + sum(length for _, length, _ in asked)):
        waiting += [(str(number), who) for number, (who, _, at) in enumerate(asked) if at == tick]
        at_work = [(who, left - 1) for who, left in at_work if left > 1]
        while waiting and len(at_work) < slots:
            busy = Counter(who for who, _ in at_work)
            run = turns(waiting, busy, last)[0]
            who, length, _ = asked[int(run)]
            patient = {one for _, one in waiting if not busy[one]} - {who}
            overtaken = {one: overtaken.get(one, Counter()) + Counter([who]) for one in patient}
            assert all(times == 1 for counts in overtaken.values() for times in counts.values())
            waiting.remove((run, who))
            at_work.append((who, length))
            last[who] = max(last.values(), default=0) + 1
    assert not waiting


@given(
    st.lists(VISITOR, max_size=20),
    st.dictionaries(VISITOR, st.integers(0, 3)),
    st.dictionaries(VISITOR, st.floats(0, 9)),
)
def test_everybody_has_a_place_and_keeps_the_order_of_their_own_questions(
    asked: list[str], busy: dict[str, int], last: dict[str, float]
) -> None:
    waiting = [(f"run-{number}", who) for number, who in enumerate(asked)]
    order = turns(waiting, busy, last)
    assert sorted(order) == sorted(run for run, _ in waiting)
    for who in set(asked):
        own = [run for run, one in waiting if one == who]
        assert [run for run in order if run in own] == own


# --- in the store --------------------------------------------------------------------------------------------------


def test_one_visitor_with_many_questions_keeps_another_waiting_for_one_turn(store: Store) -> None:
    ask(store, *(f"ann-{number}" for number in range(20)))
    first = begun(store)
    ask(store, "bob-1", "bob-2")
    assert store.queue()[:5] == ["bob-1", "ann-1", "bob-2", "ann-2", "ann-3"]
    store.append(first, [Finished(1, 0.1)])
    assert served(store, 5) == ["bob-1", "ann-1", "bob-2", "ann-2", "ann-3"]


def test_who_comes_back_again_and_again_takes_turns_too(store: Store) -> None:
    ask(store, *(f"ann-{number}" for number in range(9)))
    order = []
    for number in range(4):
        ask(store, f"bob-{number}")
        order += served(store, 2)
    assert order == ["ann-0", "bob-0", "ann-1", "bob-1", "ann-2", "bob-2", "ann-3", "bob-3"]


def test_who_has_nothing_at_work_comes_before_who_was_served_long_ago(store: Store) -> None:
    ask(store, "ann-1")
    begun(store)
    ask(store, "bob-1")
    store.append(begun(store), [Failed("broke")])
    ask(store, "ann-2", "bob-2")
    assert store.queue() == ["bob-2", "ann-2"]
    assert [taken(store).run, taken(store).run] == ["bob-2", "ann-2"]


def test_what_a_dead_holder_left_does_not_count_as_work(store: Store) -> None:
    ask(store, "ann-1")
    taken(store, GONE)
    ask(store, "bob-1")
    begun(store)
    ask(store, "bob-2", "ann-2")
    assert taken(store).run == "ann-2"


def test_questions_of_nobody_count_as_those_of_one_visitor(store: Store) -> None:
    ask(store, "-1", "-2", "-3")
    begun(store)
    ask(store, "ann-1")
    assert store.queue() == ["ann-1", "2", "3"]
    assert store.run("ann-1").place == 1
    assert {one.id: one.place for one in store.runs()} == {"1": None, "ann-1": 1, "2": 2, "3": 3}


def test_one_that_works_for_some_runs_only_waits_for_none_but_them(store: Store) -> None:
    ask(store, "ann-1", "bob-1", "ann-2")
    lease = store.take(ME, 8, only={"ann-2"})
    assert lease
    assert lease.run == "ann-2"


@pytest.mark.parametrize("options", ["no json", "[]", '{"visitor": 7}', '{"visitor": null}'])
def test_options_that_nobody_understands_keep_nobody_waiting(options: str, store: Store) -> None:
    ask(store, "odd-1", "ann-1")
    raw(store.home.path).execute("UPDATE runs SET options = ? WHERE id = 'odd-1'", (options,))
    assert sorted(store.queue()) == ["ann-1", "odd-1"]
    assert taken(store)
