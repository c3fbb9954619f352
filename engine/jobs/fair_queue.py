"""The fair queue: it shares the slots between visitors, so that a visitor with many runs does not block the others."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from engine.jobs.status import mapping


def fair_order(waiting: Sequence[tuple[str, str]], busy: Mapping[str, int], served: Mapping[str, float]) -> list[str]:
    """The order in which runs start, from pairs (run, visitor) in the order of submission.

    The next visitor has the fewest running runs (`busy`), then the oldest service (`served`), then the oldest run.
    Behind the first place the order is an estimate. It assumes that no run ends and no visitor submits meanwhile.
    """
    lines: dict[str, deque[tuple[int, str]]] = {}
    for age, (run, visitor) in enumerate(waiting):
        lines.setdefault(visitor, deque()).append((age, run))
    heads = []
    for visitor, line in lines.items():
        heads.append((busy.get(visitor, 0), served.get(visitor, 0.0), line[0][0], visitor))
    heapq.heapify(heads)
    order = []
    latest = max(served.values(), default=0.0)
    while heads:
        running, _, _, visitor = heapq.heappop(heads)
        line = lines[visitor]
        order.append(line.popleft()[1])
        latest += 1
        if line:
            heapq.heappush(heads, (running + 1, latest, line[0][0], visitor))
    return order


def queue_order(connection: sqlite3.Connection, waiting: Sequence[str], live: Collection[str]) -> list[str]:
    """The waiting runs in the order in which they start. `live` holds the running ones."""
    if len(waiting) < 2:
        return [*waiting]
    rows = connection.execute(
        "SELECT id, options FROM runs WHERE id IN (SELECT value FROM json_each(?))", (json.dumps([*waiting, *live]),)
    )
    visitors = {row["id"]: _visitor(row["options"]) for row in rows}
    busy = Counter(visitors[run] for run in live if run in visitors)
    return fair_order([(run, visitors[run]) for run in waiting], busy, _last_served(connection))


def _visitor(options: str) -> str:
    """The visitor in the options of a run; empty if there is none."""
    visitor = (mapping(options) or {}).get("visitor")
    return str(visitor or "")


def _last_served(connection: sqlite3.Connection) -> dict[str, float]:
    """For each visitor, the time of the last event of any run."""
    rows = connection.execute(
        """SELECT COALESCE(CASE WHEN json_valid(options) THEN json_extract(options, '$.visitor') END, '') AS visitor,
            MAX((SELECT at FROM events WHERE run = runs.id ORDER BY number DESC LIMIT 1)) AS at
            FROM runs GROUP BY visitor"""
    )
    return {str(row["visitor"]): row["at"] or 0.0 for row in rows}
