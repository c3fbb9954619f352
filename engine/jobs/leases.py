"""What the owner of a lease may do: take a run, append its events, return to a checkpoint, release the lease.

A live lease takes one slot. Slots are counted against the cores, over all supervisors of one home. The token of a
lease fences it: a process that lost the lease can write nothing more.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Collection, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from engine.errors import Damaged, LeaseLost
from engine.events import Event, Finished, Kept, decode, encode
from engine.jobs import payloads
from engine.jobs.batches import resumable
from engine.jobs.fair_queue import WaitingRun, queue_order, record_service
from engine.jobs.home import Home
from engine.jobs.pace import instant
from engine.jobs.process_id import ProcessId
from engine.jobs.status import held, stored_run

EXPRESS = 1  # slots beyond the cores, for instant attacks alone
INSTANT_S = 2.0  # the next run waits this long for the worker of an instant attack, before a cold worker starts
CHECKPOINTS = 2  # kept for each run: the last one, and the one before in case the last is damaged


@dataclass(frozen=True)
class Lease:
    """The right to run one attempt of a run, and the place where it resumes."""

    run: str
    token: str
    attempt: int
    spec: dict[str, Any]
    options: dict[str, Any]
    resume: Kept | None  # the checkpoint, without its payload
    after: int  # the number of the last event that is kept
    alone: bool  # no other run is running or waiting


@dataclass
class RunningJob:
    """One lease that one worker runs."""

    lease: Lease
    threads: int
    round: int
    crashes: int = 0
    deadline: float | None = None  # set by a cancel
    began: float = field(default_factory=time.monotonic)
    beat: float = field(default_factory=time.monotonic)
    next_check: float = 0.0  # when to look again for a request to cancel or delete it

    @property
    def soon_ends(self) -> bool:
        """True for an instant attack that has just started. One that replays many rounds takes longer."""
        return time.monotonic() - self.began < INSTANT_S and instant(self.lease.spec)


def take(
    connection: sqlite3.Connection, home: Home, owner: ProcessId, slots: int, only: Container[str] | None
) -> Lease | None:
    """Lease the next run in the queue, if a slot is free."""
    run = next_run(connection, slots, only)
    if run is None:
        return None
    alone = demand(connection) == 1
    row = connection.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
    token = secrets.token_hex(8)
    connection.execute("UPDATE runs SET taken = attempt WHERE id = ?", (run,))
    connection.execute(
        "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run, token, row["attempt"], owner.place, owner.pid, owner.start, time.time()),
    )
    record_service(connection, run, time.time())
    after, resume = _restore_checkpoint(connection, home, run)
    return Lease(
        run=run,
        token=token,
        attempt=row["attempt"],
        spec=json.loads(row["spec"]),
        options=json.loads(row["options"]),
        resume=resume,
        after=after,
        alone=alone,
    )


def next_run(connection: sqlite3.Connection, slots: int, only: Container[str] | None) -> str | None:
    """The run that `take` would lease.

    An instant attack may use one slot more. It ends in a second or two, and no visitor waits behind a slow run for it.
    """
    live = _live_runs(connection)
    if len(live) >= slots + EXPRESS:
        return None
    waiting = waiting_runs(connection, instant=len(live) >= slots)
    held = _held(connection, live, only)
    free = [run for run in waiting if run not in live and run not in held]
    for run in queue_order(connection, free, live):
        if only is None or run in only:
            return run
    return None


def _held(connection: sqlite3.Connection, live: Collection[str], only: Container[str] | None) -> set[str]:
    """The waiting attacks whose run is still to come. Started now, each would train that run a second time.

    A supervisor of a command (`only`) waits for a run that is running, and not for one that it may not start itself:
    perhaps no other supervisor exists.
    """
    waiting = waiting_runs(connection)
    awaited = _awaited(connection, waiting)
    coming = {*live, *(run for run in waiting if only is None or run in only)}
    others = sorted(set(awaited.values()) - coming)
    if others and only is None:
        coming.update(resumable(connection, others))
    return {attack for attack, run in awaited.items() if run in coming}


def _awaited(connection: sqlite3.Connection, waiting: Sequence[str]) -> dict[str, str]:
    """The run that each of these waiting attacks waits for. Attacks that wait for none are left out."""
    rows = connection.execute(
        """SELECT id, json_extract(options, '$.after') AS run FROM runs
            WHERE id IN (SELECT value FROM json_each(?)) AND json_extract(options, '$.after') IS NOT NULL""",
        (json.dumps(waiting),),
    )
    return {str(row["id"]): str(row["run"]) for row in rows}


def queue_and_live(connection: sqlite3.Connection, more: Sequence[WaitingRun] = ()) -> tuple[list[str], set[str]]:
    """The waiting runs in the order in which they start, and the running ones. `more` join the queue in thought."""
    live = _live_runs(connection)
    waiting = [run for run in waiting_runs(connection) if run not in live]
    return start_order(connection, waiting, live, [each for each in more if each.run not in live]), live


def start_order(
    connection: sqlite3.Connection, waiting: Sequence[str], live: Collection[str], more: Sequence[WaitingRun] = ()
) -> list[str]:
    """The fair order of these waiting runs, with each attack behind the run that it waits for."""
    fair = queue_order(connection, waiting, live, more)
    if len(fair) < 2:
        return fair
    awaited = _awaited(connection, waiting)
    places = {run: place for place, run in enumerate(fair)}
    order: list[str] = []
    behind: dict[str, list[str]] = {}
    for place, run in enumerate(fair):
        first = awaited.get(run, "")
        if places.get(first, -1) > place:
            behind.setdefault(first, []).append(run)
        else:
            order += [run, *behind.get(run, ())]
    return order


def demand(connection: sqlite3.Connection) -> int:
    """The number of runs that are running or waiting."""
    return len(_live_runs(connection).union(waiting_runs(connection)))


def waiting_runs(connection: sqlite3.Connection, instant: bool = False) -> list[str]:
    """Runs that may be leased, the oldest first; with `instant`, instant attacks alone.

    A run with an unreadable spec is left out, so it blocks no other.
    """
    rows = connection.execute(
        """SELECT id FROM runs WHERE taken < attempt AND instant >= ?
            AND NOT EXISTS (SELECT 1 FROM requests WHERE kind = 'cancel' AND run = id AND number > attempt)
            AND NOT EXISTS (SELECT 1 FROM requests WHERE kind = 'delete' AND run = id)
            AND CASE WHEN json_valid(spec) AND json_valid(options)
                THEN json_type(spec) = 'object' AND json_type(options) = 'object' END
            ORDER BY attempt""",
        (int(instant),),
    )
    return [row["id"] for row in rows]


def append(connection: sqlite3.Connection, lease: Lease, events: Sequence[Event]) -> None:
    """Number and write events. An event that ends the run releases the lease in the same transaction."""
    check(connection, lease)
    now = time.time()
    bodies = [json.dumps(encode(event), allow_nan=False, separators=(",", ":")) for event in events]
    row = connection.execute("SELECT told FROM runs WHERE id = ?", (lease.run,)).fetchone()
    first = row["told"] + 1
    rows = [(lease.run, number, lease.attempt, now, body) for number, body in enumerate(bodies, start=first)]
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute(
        "UPDATE runs SET told = told + ?, text = text + ? WHERE id = ?",
        (len(bodies), sum(map(len, bodies)), lease.run),
    )
    if any(event.ends for event in events):
        last = events[-1]
        if isinstance(last, Finished):
            connection.execute("UPDATE runs SET seconds = ? WHERE id = ?", (last.seconds, lease.run))
        release(connection, lease)


def outdated_checkpoints(connection: sqlite3.Connection, run: str) -> set[str]:
    """Names of checkpoints that newer ones replaced. A finished run needs none of its checkpoints."""
    stored = stored_run(connection, run)
    keep = 0 if stored and stored.status == "finished" else CHECKPOINTS
    names = [kept.name for _, kept in _checkpoints(connection, run)]
    return set(names) - set(names[:keep])


def rewind(connection: sqlite3.Connection, home: Home, lease: Lease) -> Lease:
    """Return to the last readable checkpoint, for a new worker of the same owner."""
    check(connection, lease)
    after, resume = _restore_checkpoint(connection, home, lease.run)
    return replace(lease, after=after, resume=resume)


def renew(connection: sqlite3.Connection, lease: Lease) -> None:
    check(connection, lease)
    connection.execute("UPDATE leases SET beat = ? WHERE token = ?", (time.time(), lease.token))


def release(connection: sqlite3.Connection, lease: Lease) -> None:
    connection.execute("DELETE FROM leases WHERE run = ? AND token = ?", (lease.run, lease.token))


def stop_requested(connection: sqlite3.Connection, lease: Lease) -> bool:
    """True if a request to cancel or delete this attempt exists."""
    query = "SELECT 1 FROM requests WHERE kind IN ('cancel', 'delete') AND run = ? AND number > ?"
    return connection.execute(query, (lease.run, lease.attempt)).fetchone() is not None


def check(connection: sqlite3.Connection, lease: Lease) -> None:
    query = "SELECT 1 FROM leases WHERE run = ? AND token = ?"
    if connection.execute(query, (lease.run, lease.token)).fetchone() is None:
        raise LeaseLost(f"run {lease.run}: another supervisor owns it now")


def _live_runs(connection: sqlite3.Connection) -> set[str]:
    """Runs with a lease that is renewed in time.

    A lease that is no longer renewed stays until another process takes its run. Its owner may only have been stopped
    for a while (Ctrl-Z, a laptop put to sleep). Meanwhile its slot is free, because it uses no core. When the owner
    wakes up, it continues with the same lease.
    """
    return {str(row["run"]) for row in connection.execute("SELECT * FROM leases") if held(row)}


def _restore_checkpoint(connection: sqlite3.Connection, home: Home, run: str) -> tuple[int, Kept | None]:
    """Delete the events after the last readable checkpoint. The run produces them again when it resumes."""
    after, resume = _last_readable_checkpoint(connection, home, run)
    deleted = connection.execute("DELETE FROM events WHERE run = ? AND number > ?", (run, after)).rowcount
    if deleted:
        connection.execute(
            """UPDATE runs SET edition = ?, text = (SELECT COALESCE(SUM(LENGTH(body)), 0) FROM events WHERE run = id)
                WHERE id = ?""",
            (secrets.token_hex(4), run),
        )
    rows = connection.execute(
        """SELECT json_extract(body, '$.name') AS name FROM events WHERE run = ? AND CASE WHEN json_valid(body)
            THEN json_extract(body, '$.event') IN ('kept', 'pictured') AND json_extract(body, '$.name') <> '' END""",
        (run,),
    )
    payloads.keep_only(home, run, {row["name"] for row in rows})
    return after, resume


def _last_readable_checkpoint(connection: sqlite3.Connection, home: Home, run: str) -> tuple[int, Kept | None]:
    """The number of its event and the checkpoint; 0 and None if there is none."""
    for number, kept in _checkpoints(connection, run):
        if payloads.readable(home, run, kept.name):
            return number, kept
    return 0, None


def _checkpoints(connection: sqlite3.Connection, run: str) -> list[tuple[int, Kept]]:
    """Every checkpoint whose event can be read, the newest first."""
    rows = connection.execute(
        """SELECT number, body FROM events WHERE run = ?
            AND CASE WHEN json_valid(body) THEN json_extract(body, '$.kind') = 'checkpoint' END ORDER BY number DESC""",
        (run,),
    )
    checkpoints = []
    for row in rows:
        with suppress(Damaged):
            event = decode(json.loads(row["body"]))
            if isinstance(event, Kept):
                checkpoints.append((int(row["number"]), event))
    return checkpoints
