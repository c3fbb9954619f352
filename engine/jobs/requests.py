"""What may be requested of a run: submit, cancel, delete. Each function works inside a transaction of its caller."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.errors import UnknownName, shown
from engine.jobs import payloads, visits
from engine.jobs.home import Home
from engine.jobs.pace import instant, work_key
from engine.jobs.status import QUERY_LIMIT, Status, StoredRun, stored_run

MACHINE = "machine"  # the visitor who owns this machine: the command line, and every browser at home
RESUMABLE: tuple[Status, ...] = ("failed", "cancelled", "interrupted", "damaged")
UNENDED: tuple[Status, ...] = ("queued", "running", "interrupted")


def submit(
    connection: sqlite3.Connection, home: Home, run: str, spec: Mapping[str, Any], options: Mapping[str, Any]
) -> Status:
    """Put a run into the queue. A finished, queued or running one stays as it is."""
    stored = stored_run(connection, run)
    if stored and not stored.removed and stored.status not in RESUMABLE:
        return stored.status
    home.require_room()
    if stored and stored.damaged:  # it starts from the beginning: what is left of it may be wrong
        delete_history(connection, run)
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
    attempt = add_request(connection, run, "submit")
    connection.execute(
        """INSERT INTO runs (id, spec, options, attempt, edition, instant, work) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET spec = excluded.spec, options = excluded.options,
            attempt = excluded.attempt, instant = excluded.instant, work = excluded.work""",
        (run, _json(spec), _json(options), attempt, secrets.token_hex(4), instant(spec), work_key(spec)),
    )
    return "queued"


def record_visitor(connection: sqlite3.Connection, run: str, visitor: str) -> None:
    """Record that this visitor requested the run by itself. A later request replaces a cancel of this visitor."""
    connection.execute("INSERT OR REPLACE INTO run_requests VALUES (?, ?, ?, NULL)", (run, visitor, time.time()))
    visits.record(connection, [visitor])


def cancel(connection: sqlite3.Connection, run: str) -> Status:
    """Stop a run, or take it out of the queue. A run that has ended keeps its status."""
    if existing_run(connection, run).status in UNENDED:
        add_request(connection, run, "cancel")
    return existing_run(connection, run).status


def add_request(connection: sqlite3.Connection, run: str, kind: str) -> int:
    cursor = connection.execute("INSERT INTO requests (run, kind, at) VALUES (?, ?, ?)", (run, kind, time.time()))
    return int(cursor.lastrowid or 0)


def existing_run(connection: sqlite3.Connection, run: str) -> StoredRun:
    stored = stored_run(connection, run)
    if stored and not stored.removed:
        return stored
    if connection.execute("SELECT 1 FROM batches WHERE id = ?", (run,)).fetchone():
        raise UnknownName(
            f"run: {shown(run)} is a batch", "Name one of its runs. `python3 -m engine batches --json` has them"
        )
    raise UnknownName(
        f"run: no {shown(run)}",
        "It was never submitted in this home, or it was deleted. `python3 -m engine runs` lists what is there",
    )


# --- who requested it --------------------------------------------------------------------------------------


def requesters(
    connection: sqlite3.Connection, runs: Sequence[str], wanting: bool = False, kind: str | None = None
) -> dict[str, list[str]]:
    """The visitors who requested each run, by itself or in a batch, the first one first.

    With `wanting`, without those who cancelled. With `kind`, by itself or in a batch of this kind. A run that no one
    requested is left out.
    """
    visitors: dict[str, list[str]] = {}
    rule = opted_out = ""
    if wanting:
        rule = "AND withdrawn IS NULL"
        opted_out = """AND NOT EXISTS (SELECT 1 FROM run_requests o
            WHERE o.run = m.run AND o.visitor = r.visitor AND o.withdrawn IS NOT NULL)"""
    for start in range(0, len(runs), QUERY_LIMIT):
        ids = json.dumps(list(runs[start : start + QUERY_LIMIT]))
        # One row for all: after each row a thread waits for its turn, and a class has many threads.
        (rows,) = connection.execute(
            f"""SELECT json_group_array(json_array(run, visitor)) FROM (
                SELECT run, visitor, at FROM run_requests WHERE run IN (SELECT value FROM json_each(?)) {rule}
                UNION ALL SELECT m.run, r.visitor, r.at FROM members m JOIN batch_requests r ON r.batch = m.batch
                    JOIN batches b ON b.id = m.batch AND (? IS NULL OR b.kind = ?)
                    WHERE m.run IN (SELECT value FROM json_each(?)) {rule} {opted_out}
                ORDER BY at)""",
            (ids, kind, kind, ids),
        ).fetchone()
        for run, visitor in json.loads(rows):
            known = visitors.setdefault(str(run), [])
            if visitor not in known:
                known.append(str(visitor))
    return visitors


# --- deleting ----------------------------------------------------------------------------------------------


def delete_rows(connection: sqlite3.Connection, run: str, deletion: int) -> bool:
    """Remove the rows of a run once no process works on it. A run submitted since then starts from the beginning."""
    stored = stored_run(connection, run)
    if not request_exists(connection, deletion) or (stored and stored.lease_alive):
        return False
    delete_history(connection, run)
    if stored and not stored.removed:
        reset = "UPDATE runs SET taken = 0, told = 0, text = 0, seconds = NULL, edition = ? WHERE id = ?"
        connection.execute(reset, (secrets.token_hex(4), run))
    else:
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
        connection.execute("DELETE FROM run_requests WHERE run = ?", (run,))
        _forget_empty_batches(connection, run)
    return True


def _forget_empty_batches(connection: sqlite3.Connection, run: str) -> None:
    """Remove the batches of a deleted run that have no run left."""
    query = """SELECT DISTINCT batch FROM members WHERE run = ? AND NOT EXISTS
        (SELECT 1 FROM members other JOIN runs r ON r.id = other.run WHERE other.batch = members.batch)"""
    for row in connection.execute(query, (run,)).fetchall():
        forget_batch(connection, row["batch"])


def forget_batch(connection: sqlite3.Connection, batch: str) -> None:
    """Remove a batch, its members and who requested it. Its runs stay."""
    connection.execute("DELETE FROM members WHERE batch = ?", (batch,))
    connection.execute("DELETE FROM batch_requests WHERE batch = ?", (batch,))
    connection.execute("DELETE FROM batches WHERE id = ?", (batch,))


def delete_history(connection: sqlite3.Connection, run: str) -> None:
    """Remove the events and the lease of a run."""
    connection.execute("DELETE FROM events WHERE run = ?", (run,))
    connection.execute("DELETE FROM leases WHERE run = ?", (run,))


def delete_files(connection: sqlite3.Connection, home: Home, run: str, deletion: int) -> None:
    """Remove the files together with the request. While the request exists, no process starts the run again."""
    if request_exists(connection, deletion):  # else another process completed it, and the files may be new ones
        payloads.move_to_trash(home, run)
        connection.execute("DELETE FROM requests WHERE run = ? AND number <= ?", (run, deletion))


def request_exists(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("SELECT 1 FROM requests WHERE number = ?", (number,)).fetchone() is not None


def request_deletion(connection: sqlite3.Connection, runs: Collection[str]) -> None:
    for run in runs:
        add_request(connection, run, "delete")


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)
