"""The fair queue: it shares the slots between visitors, so that a visitor with many runs does not block the others.

Attacks that do not search go first, no matter whose. So each visitor sees a picture before anyone's slow work starts.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.jobs.pace import instant_runs
from engine.jobs.requests import MACHINE, requesters

STREAK = "instant attacks in a row"  # a row among the visitors
MOST_IN_A_ROW = 20  # then one other run starts, so that no stream of instant attacks keeps it waiting for ever


@dataclass(frozen=True)
class WaitingRun:
    """One run in the queue, and the visitors who want it."""

    run: str
    visitors: tuple[str, ...]
    instant: bool = False


def fair_order(waiting: Sequence[WaitingRun], busy: Mapping[str, int], served: Mapping[str, float]) -> list[str]:
    """The order in which runs start. They are given in the order of submission.

    Instant attacks come first. Among equals, the next visitor has the fewest running runs (`busy`), then the oldest
    service (`served`), then the oldest run. Behind the first place the order is an estimate: it assumes that no run
    ends and no visitor submits meanwhile.
    """
    instant = _fair_order([each for each in waiting if each.instant], busy, served)
    others = _fair_order([each for each in waiting if not each.instant], busy, served)
    if served.get(STREAK, 0.0) >= MOST_IN_A_ROW:
        return [*others[:1], *instant, *others[1:]]
    return [*instant, *others]


def _fair_order(waiting: Sequence[WaitingRun], busy: Mapping[str, int], served: Mapping[str, float]) -> list[str]:
    lines: dict[str, deque[tuple[int, str]]] = {}
    for age, each in enumerate(waiting):
        for visitor in each.visitors:
            lines.setdefault(visitor, deque()).append((age, each.run))
    heads = []
    for visitor, line in lines.items():
        heads.append((busy.get(visitor, 0), served.get(visitor, 0.0), line[0][0], visitor))
    heapq.heapify(heads)
    order: dict[str, None] = {}
    latest = max((at for visitor, at in served.items() if visitor != STREAK), default=0.0)
    while heads:
        running, at, _, visitor = heapq.heappop(heads)
        line = lines[visitor]
        _, run = line.popleft()
        if run not in order:  # else another visitor's turn has started it
            order[run] = None
            latest += 1
            running += 1
            at = latest
        if line:
            heapq.heappush(heads, (running, at, line[0][0], visitor))
    return list(order)


def queue_order(
    connection: sqlite3.Connection, waiting: Sequence[str], live: Collection[str], more: Sequence[WaitingRun] = ()
) -> list[str]:
    """The waiting runs in the order in which they start. `live` holds the running ones.

    `more` are runs that are not in the queue: the order shows where they would be.
    """
    if len(waiting) + len(more) < 2:
        return [*waiting, *(each.run for each in more)]
    visitors = requesters(connection, [*waiting, *live], wanting=True)
    instant = instant_runs(connection, waiting)
    runs = [WaitingRun(run, _visitors(visitors, run), run in instant) for run in waiting]
    runs += [each for each in more if each.run not in waiting]
    busy = Counter(visitor for run in live for visitor in _visitors(visitors, run))
    rows = connection.execute("SELECT visitor, CAST(at AS REAL) AS at FROM served")
    served = {str(row["visitor"]): float(row["at"]) for row in rows}
    return fair_order(runs, busy, served)


def record_service(connection: sqlite3.Connection, run: str, now: float) -> None:
    """Record that everyone who wants this run gets a slot now, and how many instant attacks did so in a row."""
    row = connection.execute("SELECT instant FROM runs WHERE id = ?", (run,)).fetchone()
    streak = "served.at + 1" if row["instant"] == 1 else "0"
    query = f"INSERT INTO served VALUES (?, ?) ON CONFLICT (visitor) DO UPDATE SET at = {streak}"
    connection.execute(query, (STREAK, float(row["instant"] == 1)))
    visitors = _visitors(requesters(connection, [run], wanting=True), run)
    connection.executemany("INSERT OR REPLACE INTO served VALUES (?, ?)", [(visitor, now) for visitor in visitors])


def _visitors(visitors: Mapping[str, Sequence[str]], run: str) -> tuple[str, ...]:
    return tuple(visitors.get(run) or (MACHINE,))
