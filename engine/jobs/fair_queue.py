"""Fair turns: whose run is next, so that a visitor with many questions keeps nobody else waiting."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from engine.jobs.status import mapping


def turns(waiting: Sequence[tuple[str, str]], busy: Mapping[str, int], served: Mapping[str, float]) -> list[str]:
    """Runs in the order of their turns, from (run, visitor) with the oldest question first.

    Next is whoever has the fewest runs at work (`busy`), then who was `served` longest ago, then the oldest question.
    Those behind the first are told as if nothing ended and nobody else asked meanwhile: near, and never certain.
    """
    lines: dict[str, deque[tuple[int, str]]] = {}
    for age, (run, visitor) in enumerate(waiting):
        lines.setdefault(visitor, deque()).append((age, run))
    heads = [(busy.get(who, 0), served.get(who, 0.0), line[0][0], who) for who, line in lines.items()]
    heapq.heapify(heads)
    order, latest = [], max(served.values(), default=0.0)
    while heads:
        at_work, _, _, who = heapq.heappop(heads)
        order.append(lines[who].popleft()[1])
        latest += 1
        if line := lines[who]:
            heapq.heappush(heads, (at_work + 1, latest, line[0][0], who))
    return order


def in_turn(connection: sqlite3.Connection, waiting: Sequence[str], live: Collection[str]) -> list[str]:
    """The runs that wait, in the order of their turns; `live` are those at work."""
    if len(waiting) < 2:
        return [*waiting]
    rows = connection.execute(
        "SELECT id, options FROM runs WHERE id IN (SELECT value FROM json_each(?))", (json.dumps([*waiting, *live]),)
    )
    visitors = {row["id"]: str((mapping(row["options"]) or {}).get("visitor") or "") for row in rows}
    busy = Counter(visitors[run] for run in live if run in visitors)
    return turns([(run, visitors[run]) for run in waiting], busy, _served(connection))


def _served(connection: sqlite3.Connection) -> dict[str, float]:
    """When a run of each visitor told something last."""
    rows = connection.execute(
        """SELECT COALESCE(CASE WHEN json_valid(options) THEN json_extract(options, '$.visitor') END, '') AS visitor,
            MAX((SELECT at FROM events WHERE run = runs.id ORDER BY number DESC LIMIT 1)) AS at
            FROM runs GROUP BY visitor"""
    )
    return {str(row["visitor"]): row["at"] or 0.0 for row in rows}
