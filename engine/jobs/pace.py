"""How long runs take on this machine: what similar runs took, and when a batch will have ended.

The estimate plays the queue: each slot takes the next run, no matter who requested it, for as long as such runs took.
"""

from __future__ import annotations

import heapq
import json
import math
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from engine.jobs.status import mapping

# What decides how long a run takes. Runs that differ in seed, noise or pictures take about as long.
RUN_FIELDS = ("dataset", "model", "rounds", "clients", "sampled", "sampling", "epochs", "batch")
ATTACK_FIELDS = ("kind", "attack", "upload", "restarts", "view", "round")
LEAST_SHARE = 0.05  # of a running run, before its own pace is believed
RECENT = 10  # finished runs in the mean
LAST_EVENTS = 20  # of a running run, among which the last one with a share is looked for


def instant(spec: Mapping[str, Any]) -> bool:
    """Whether this is an attack on pictures that does not search: it answers in a second and need not wait for others.

    An attack that searches has a number of iterations.
    """
    attack = spec.get("attack")
    if not isinstance(attack, Mapping) or spec.get("kind", "pictures") != "pictures":
        return False
    return "iterations" not in attack


def instant_runs(connection: sqlite3.Connection, runs: Collection[str]) -> set[str]:
    """Those of these runs that are instant attacks."""
    query = "SELECT id FROM runs WHERE instant = 1 AND id IN (SELECT value FROM json_each(?))"
    return {str(row["id"]) for row in connection.execute(query, (json.dumps(list(runs)),))}


def work_key(spec: Mapping[str, Any]) -> str:
    """A short hash of what decides how long a run takes."""
    run = spec.get("run") if "attack" in spec else spec
    fields: dict[str, Any] = {}
    if isinstance(run, Mapping):
        fields = {name: run.get(name) for name in RUN_FIELDS}
        fields["method"] = _name(run.get("method"))
    if "attack" in spec:
        fields |= {name: spec.get(name) for name in ATTACK_FIELDS}
        pictures = spec.get("pictures")
        fields["pictures"] = len(pictures) if isinstance(pictures, list | tuple) else 0
    text = json.dumps(fields, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:12]


def _name(part: Any) -> str:
    return str(part.get("name", "") if isinstance(part, Mapping) else part)


def share_done(body: Mapping[str, Any]) -> float | None:
    """The finished share of a run, from one of its events as JSON. None if the event does not show it."""
    kind = body.get("event")
    share = math.nan
    try:
        if kind == "round":
            share = float((body["round"] - 1 + body.get("fraction", 0.0)) / max(1, body["of"]))
        elif kind == "pictured":
            share = float(body["iteration"] / max(1, body["of"]))
        elif kind == "step":
            share = float(body["fraction"])
    except (KeyError, TypeError, ValueError, OverflowError):  # a damaged event
        return None
    return min(1.0, max(0.0, share)) if math.isfinite(share) else None


@dataclass(frozen=True)
class RunPace:
    """What is known of how long one unfinished run takes."""

    run: str
    work: str
    instant: bool = False  # an attack that does not search says nothing about one that does
    share: float = 0.0  # the finished share of a running run
    own_total: float | None = None  # the seconds of the whole run at its own pace, once it has one

    def total(self, usual: Mapping[str, float]) -> float | None:
        """The seconds of the whole run: at its own pace, else what such runs took."""
        return usual.get(self.work) if self.own_total is None else self.own_total


def seconds_left(
    members: Collection[str],
    running: Sequence[RunPace],
    waiting: Sequence[RunPace],
    usual: Mapping[str, float],
    slots: int,
) -> float | None:
    """The seconds until the last of these runs ends. `waiting` is the whole queue, in its order.

    `usual` are the mean seconds of finished runs by their work. A member of unknown work counts as the others of its
    kind. None while nothing is known about a member, or about a run before it.
    """
    left = {pace.run for pace in (*running, *waiting)} & set(members)
    if not left:
        return 0.0
    known = dict(usual)
    for pace in running:
        total = pace.total(usual)
        if total is not None and pace.work:
            known.setdefault(pace.work, total)
    last_place = max((place for place, pace in enumerate(waiting) if pace.run in left), default=-1)
    before = (*running, *waiting[: last_place + 1])
    of_batch = [pace for pace in before if pace.run in left]
    fallback = {kind: _mean([pace for pace in of_batch if pace.instant is kind], known) for kind in (True, False)}
    for pace in before:
        if pace.total(known) is None and (pace.run not in left or fallback[pace.instant] is None):
            return None
    ends: list[float] = []
    last = 0.0
    for pace in running:
        total = pace.total(known) or fallback[pace.instant] or 0.0
        end = total * (1 - pace.share)
        last = max(last, end) if pace.run in left else last
        ends.append(end)
    ends += [0.0] * (slots - len(ends))
    heapq.heapify(ends)
    for pace in waiting[: last_place + 1]:
        end = heapq.heappop(ends) + (pace.total(known) or fallback[pace.instant] or 0.0)
        last = max(last, end) if pace.run in left else last
        heapq.heappush(ends, end)
    return last


def _mean(paces: Sequence[RunPace], known: Mapping[str, float]) -> float | None:
    """The mean seconds of those of these runs whose seconds are known."""
    totals = [pace.total(known) for pace in paces]
    seconds = [total for total in totals if total is not None]
    return sum(seconds) / len(seconds) if seconds else None


# --- from the store ----------------------------------------------------------------------------------------


def left(
    connection: sqlite3.Connection,
    runs: Collection[str],
    queue: Sequence[str],
    live: Collection[str],
    slots: int,
    expected: Mapping[str, float] | None = None,
) -> float | None:
    """The seconds until the last of these runs ends. `queue` holds what waits, in order; `live` what runs.

    `expected` are the forecast seconds of runs that the store does not have yet.
    """
    forecast = dict(expected or {})
    work = {**_work(connection, [*queue, *live]), **{run: run for run in forecast}}
    instants = instant_runs(connection, [*queue, *live])
    now = time.time()
    running = []
    for run in live:
        share, own_total = _own_pace(connection, run, now)
        running.append(RunPace(run, work.get(run, ""), run in instants, share, own_total))
    waiting = [RunPace(run, work.get(run, ""), run in instants) for run in queue]
    usual = {**forecast, **usual_seconds(connection, list(work.values()))}
    return seconds_left(runs, running, waiting, usual, slots)


def usual_seconds(connection: sqlite3.Connection, works: Sequence[str]) -> dict[str, float]:
    """The mean seconds of the last few finished runs with each of these keys."""
    usual = {}
    for work in set(works) - {""}:
        query = """SELECT CAST(seconds AS REAL) AS seconds FROM runs WHERE work = ? AND seconds IS NOT NULL
            ORDER BY attempt DESC LIMIT ?"""
        rows = connection.execute(query, (work, RECENT)).fetchall()
        seconds = [float(row["seconds"]) for row in rows if math.isfinite(row["seconds"]) and row["seconds"] >= 0]
        if seconds:
            usual[work] = sum(seconds) / len(seconds)
    return usual


def _work(connection: sqlite3.Connection, runs: Sequence[str]) -> dict[str, str]:
    query = "SELECT id, work FROM runs WHERE id IN (SELECT value FROM json_each(?))"
    return {str(row["id"]): str(row["work"]) for row in connection.execute(query, (json.dumps(list(runs)),))}


def _own_pace(connection: sqlite3.Connection, run: str, now: float) -> tuple[float, float | None]:
    """The finished share of a running run, and the seconds of the whole run at the pace of its current attempt.

    An attempt that resumed began with a share: only what it added counts.
    """
    query = "SELECT body FROM events WHERE run = ? ORDER BY number DESC LIMIT ?"
    share = _first_share(connection.execute(query, (run, LAST_EVENTS)).fetchall())
    query = """SELECT body, CAST(at AS REAL) AS at FROM events
        WHERE run = ? AND attempt = (SELECT attempt FROM runs WHERE id = ?) ORDER BY number LIMIT ?"""
    rows = connection.execute(query, (run, run, LAST_EVENTS)).fetchall()
    first = _first_share(rows)
    if share is None or first is None or share - first < LEAST_SHARE:
        return share or 0.0, None
    elapsed = max(0.0, now - rows[0]["at"])
    return share, elapsed / (share - first)


def _first_share(rows: Sequence[sqlite3.Row]) -> float | None:
    for row in rows:
        share = share_done(mapping(str(row["body"])) or {})
        if share is not None:
            return share
    return None
