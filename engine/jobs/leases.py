"""What the holder of a lease may do: take a run, tell its events, go back to a checkpoint, let go.

A lease is a slot: the live ones are counted against the cores, over all supervisors of one home. Its token fences:
whoever lost the lease can write nothing more.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import Damaged, LeaseLost
from engine.events import Event, Kept, decode, encode
from engine.jobs import payloads
from engine.jobs.fair_queue import in_turn
from engine.jobs.home import Home
from engine.jobs.process_id import ProcessId
from engine.jobs.status import held, stored_run

CHECKPOINTS = 2  # kept of a run: the last one, and one to fall back on


@dataclass(frozen=True)
class Lease:
    """The right to run one attempt, and where it goes on."""

    run: str
    token: str
    attempt: int
    spec: dict[str, Any]
    options: dict[str, Any]
    resume: Kept | None  # the checkpoint, without its payload
    after: int  # the number of the last event that stays
    alone: bool  # nobody else runs or waits


def take(
    connection: sqlite3.Connection, home: Home, holder: ProcessId, slots: int, only: Container[str] | None
) -> Lease | None:
    """The next run in turn, if a slot is free."""
    chosen = following(connection, slots, only)
    if chosen is None:
        return None
    alone = demand(connection) == 1
    row = connection.execute("SELECT * FROM runs WHERE id = ?", (chosen,)).fetchone()
    token = secrets.token_hex(8)
    connection.execute("UPDATE runs SET taken = attempt WHERE id = ?", (chosen,))
    connection.execute(
        "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)",
        (chosen, token, row["attempt"], holder.place, holder.pid, holder.start, time.time()),
    )
    after, resume = _go_back(connection, home, chosen)
    return Lease(
        run=chosen,
        token=token,
        attempt=row["attempt"],
        spec=json.loads(row["spec"]),
        options=json.loads(row["options"]),
        resume=resume,
        after=after,
        alone=alone,
    )


def following(connection: sqlite3.Connection, slots: int, only: Container[str] | None) -> str | None:
    """The run that `take` would take."""
    live = _live(connection)
    if len(live) >= slots:
        return None
    free = in_turn(connection, [run for run in waiting(connection) if run not in live], live)
    return next((run for run in free if only is None or run in only), None)


def demand(connection: sqlite3.Connection) -> int:
    """How many slots would be in use if there were enough."""
    return len(_live(connection).union(waiting(connection)))


def waiting(connection: sqlite3.Connection) -> list[str]:
    """Runs that may be taken, the oldest first; a question that cannot be read keeps nobody waiting behind it."""
    rows = connection.execute(
        """SELECT id FROM runs WHERE taken < attempt
            AND NOT EXISTS (SELECT 1 FROM requests WHERE kind = 'cancel' AND run = id AND number > attempt)
            AND NOT EXISTS (SELECT 1 FROM requests WHERE kind = 'delete' AND run = id)
            AND CASE WHEN json_valid(spec) AND json_valid(options)
                THEN json_type(spec) = 'object' AND json_type(options) = 'object' END
            ORDER BY attempt"""
    )
    return [row["id"] for row in rows]


def append(connection: sqlite3.Connection, lease: Lease, events: Sequence[Event]) -> None:
    """Number and write events; one that ends gives the lease back with the same stroke."""
    check(connection, lease)
    now = time.time()
    bodies = [json.dumps(encode(event), allow_nan=False, separators=(",", ":")) for event in events]
    told = connection.execute("SELECT told FROM runs WHERE id = ?", (lease.run,)).fetchone()["told"]
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
        [(lease.run, told + number, lease.attempt, now, body) for number, body in enumerate(bodies, start=1)],
    )
    connection.execute(
        "UPDATE runs SET told = told + ?, text = text + ? WHERE id = ?",
        (len(bodies), sum(map(len, bodies)), lease.run),
    )
    if any(event.ends for event in events):
        release(connection, lease)


def outdated_checkpoints(connection: sqlite3.Connection, run: str) -> set[str]:
    """Names of checkpoints that newer ones have replaced; once the run is finished nobody goes back to any."""
    known = stored_run(connection, run)
    keep = 0 if known and known.status == "finished" else CHECKPOINTS
    names = [kept.name for _, kept in _checkpoints(connection, run)]
    return set(names) - set(names[:keep])


def rewind(connection: sqlite3.Connection, home: Home, lease: Lease) -> Lease:
    """Back to the last whole checkpoint: the holder's worker is gone, and another will go on."""
    check(connection, lease)
    after, resume = _go_back(connection, home, lease.run)
    return replace(lease, after=after, resume=resume)


def renew(connection: sqlite3.Connection, lease: Lease) -> None:
    check(connection, lease)
    connection.execute("UPDATE leases SET beat = ? WHERE token = ?", (time.time(), lease.token))


def release(connection: sqlite3.Connection, lease: Lease) -> None:
    connection.execute("DELETE FROM leases WHERE run = ? AND token = ?", (lease.run, lease.token))


def unwanted(connection: sqlite3.Connection, lease: Lease) -> bool:
    """Has somebody asked to cancel or delete this attempt?"""
    asked = "SELECT 1 FROM requests WHERE kind IN ('cancel', 'delete') AND run = ? AND number > ?"
    return connection.execute(asked, (lease.run, lease.attempt)).fetchone() is not None


def check(connection: sqlite3.Connection, lease: Lease) -> None:
    holds = connection.execute("SELECT 1 FROM leases WHERE run = ? AND token = ?", (lease.run, lease.token)).fetchone()
    if holds is None:
        raise LeaseLost(f"run {lease.run}: another supervisor holds it now")


def _live(connection: sqlite3.Connection) -> set[str]:
    """Runs whose holder lives and moves.

    A lease that nobody renews stays until its run is taken anew: its holder may only have been stopped for a while
    (Ctrl-Z, a laptop put to sleep). Meanwhile its slot is free, for it uses no core; afterwards it simply goes on.
    """
    return {str(row["run"]) for row in connection.execute("SELECT * FROM leases") if held(row)}


def _go_back(connection: sqlite3.Connection, home: Home, run: str) -> tuple[int, Kept | None]:
    """Delete what was told after the last checkpoint that can be read; replay will tell it again."""
    after, resume = next(
        ((number, kept) for number, kept in _checkpoints(connection, run) if payloads.whole(home, run, kept.name)),
        (0, None),
    )
    gone = connection.execute("DELETE FROM events WHERE run = ? AND number > ?", (run, after)).rowcount
    if gone:
        connection.execute(
            """UPDATE runs SET edition = ?, text = (SELECT COALESCE(SUM(LENGTH(body)), 0) FROM events WHERE run = id)
                WHERE id = ?""",
            (secrets.token_hex(4), run),
        )
    named = connection.execute(
        """SELECT json_extract(body, '$.name') AS name FROM events WHERE run = ? AND CASE WHEN json_valid(body)
            THEN json_extract(body, '$.event') IN ('kept', 'pictured') AND json_extract(body, '$.name') <> '' END""",
        (run,),
    )
    payloads.keep_only(home, run, {row["name"] for row in named})
    return after, resume


def _checkpoints(connection: sqlite3.Connection, run: str) -> list[tuple[int, Kept]]:
    """The newest first; one that cannot be read is none."""
    rows = connection.execute(
        """SELECT number, body FROM events WHERE run = ?
            AND CASE WHEN json_valid(body) THEN json_extract(body, '$.kind') = 'checkpoint' END ORDER BY number DESC""",
        (run,),
    )
    found = []
    for row in rows:
        with suppress(Damaged):
            event = decode(json.loads(row["body"]))
            found += [(int(row["number"]), event)] if isinstance(event, Kept) else []
    return found
