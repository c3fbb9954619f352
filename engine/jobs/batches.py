"""The stored batches: many runs requested as one, who requested them, and how far they are."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from engine.errors import UnknownName, shown
from engine.jobs import requests, visits
from engine.jobs.database import Database
from engine.jobs.requests import MACHINE, UNENDED
from engine.jobs.status import MOVING, Status, StoredRun, mapping, stored_runs_of
from engine.jobs.visits import COMMAND

BatchKind = Literal["sweep", "table", "leak grid", "cliff", "ladder", "blind test", "seeds", "photo", "try"]


MOST_RESUMES = 3  # by itself, after outages; a request of a visitor counts from 0 again


@dataclass(frozen=True)
class BatchMember:
    """One run or attack of a batch. One with a problem cannot be requested; the others go on."""

    run: str  # its id; empty if its settings make no spec
    spec: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    after: str = ""  # a run whose states this attack reads: it starts when that run is neither queued nor running


@dataclass(frozen=True)
class Batch:
    """Many runs requested as one."""

    kind: BatchKind
    title: str
    members: tuple[BatchMember, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)  # the settings that a screen opens it with

    @property
    def id(self) -> str:
        """A hash of the kind and of the runs in their order: the same request is the same batch."""
        text = json.dumps([self.kind, [member.run for member in self.members]])
        return sha256(text.encode()).hexdigest()[:12]

    @property
    def runs(self) -> tuple[str, ...]:
        """The members that can be requested."""
        return tuple(member.run for member in self.members if member.run and not member.problem)


@dataclass(frozen=True)
class ListedBatch:
    """A stored batch as a list shows it."""

    id: str
    kind: str
    title: str
    spec: Mapping[str, Any]
    at: float  # seconds since 1970
    runs: tuple[str, ...]
    problems: Mapping[int, str]  # by place: why a member could not be requested
    visitors: tuple[str, ...]  # who requested it, the first one first

    def counts(self, statuses: Mapping[str, str]) -> Counter[str]:
        """The number of members by status. A member that was deleted counts as `deleted`."""
        return Counter(statuses.get(run, "deleted") for run in self.runs)

    def json(self) -> dict[str, Any]:
        """The batch as the command line reports it. Who requested it stays here."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "at": self.at,
            "runs": list(self.runs),
            "problems": list(self.problems.values()),
        }


@dataclass(frozen=True)
class Withdrawal:
    """What a cancel did."""

    cancelled: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # they continue, because someone else requested them


class Batches:
    """The batches of one home."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._home = database.home

    def request(
        self, batch: Batch, visitor: str = MACHINE, options: Mapping[str, Any] | None = None
    ) -> dict[str, Status]:
        """Store a batch and submit its members, all in one transaction. Returns their statuses.

        Finished members stay finished. Queued and running ones are shared with everyone who requested them.
        """
        with self._database.write() as connection:
            connection.execute("DELETE FROM members WHERE batch = ?", (batch.id,))
            connection.execute(
                """INSERT INTO batches VALUES (?, ?, ?, ?, ?) ON CONFLICT (id)
                    DO UPDATE SET spec = excluded.spec""",  # its title stays: a visitor may have named it
                (batch.id, batch.kind, batch.title, json.dumps(batch.spec, allow_nan=False), time.time()),
            )
            rows = [(batch.id, place, member.run, member.problem) for place, member in enumerate(batch.members)]
            connection.executemany("INSERT INTO members VALUES (?, ?, ?, ?)", rows)
            _record(connection, batch.id, visitor)
            statuses: dict[str, Status] = {}
            for member in batch.members:
                if member.run and not member.problem:
                    order = {"after": member.after} if member.after else {}
                    own = {**(options or {}), **order}
                    statuses[member.run] = requests.submit(connection, self._home, member.run, member.spec, own)
            return statuses

    def submit(self, specs: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any] | None = None) -> None:
        """Submit members again that were interrupted. Their batch is stored already."""
        with self._database.write() as connection:
            for run, spec in specs.items():
                requests.submit(connection, self._home, run, spec, options or {})

    def resume(self, batch: str, visitor: str = MACHINE) -> dict[str, Status]:
        """Submit the members of a stored batch again, for this visitor. Deleted members stay deleted."""
        with self._database.write() as connection:
            _existing(connection, batch)
            _record(connection, batch, visitor)
            statuses: dict[str, Status] = {}
            for stored in _members(connection, batch):
                if stored.removed or stored.damaged:
                    continue
                statuses[str(stored.row["id"])] = self._submit_again(connection, stored)
            return statuses

    def _submit_again(self, connection: sqlite3.Connection, stored: StoredRun) -> Status:
        """Submit a stored run with the spec and the options that it has."""
        spec = mapping(stored.row["spec"]) or {}
        options = mapping(stored.row["options"]) or {}
        return requests.submit(connection, self._home, str(stored.row["id"]), spec, options)

    def withdraw(self, batch: str, visitor: str, owns_machine: bool = False) -> Withdrawal:
        """Cancel a batch for one visitor. Members end that no one else wants. A second cancel changes nothing.

        `owns_machine`: the visitor is the owner of this machine, so requests of the machine do not keep a run.
        """
        with self._database.write() as connection:
            _existing(connection, batch)
            _withdraw(connection, batch, visitor)
            runs = [str(stored.row["id"]) for stored in _members(connection, batch) if stored.status in UNENDED]
            return cancel_unwanted(connection, runs, owns_machine)

    def resume_interrupted(self) -> list[str]:
        """Submit members again that an outage interrupted, while someone wants their batch. Returns these runs.

        Only a few times: a run that ends the whole program would end it again and again.
        """
        with self._database.read() as connection:
            candidates = resumable(connection)
        if not candidates:
            return []
        with self._database.write() as connection:
            interrupted = _interrupted(connection, candidates)  # again: another supervisor may have been faster
            for stored in interrupted:
                self._submit_again(connection, stored)
        return [str(stored.row["id"]) for stored in interrupted]

    def find(self, batch: str) -> ListedBatch | None:
        """A stored batch, or None."""
        with self._database.read() as connection:
            return next(iter(_listed(connection, "WHERE id = ?", (batch,))), None)

    def listed(self) -> list[ListedBatch]:
        """Every batch, the last requested first."""
        with self._database.read() as connection:
            return _listed(connection, "ORDER BY at DESC", ())

    def unfinished(self, visitor: str) -> list[ListedBatch]:
        """The batches that this visitor wants, with a member that is queued or running."""
        rule = """WHERE id IN (SELECT batch FROM batch_requests WHERE visitor = ? AND withdrawn IS NULL)
            ORDER BY at DESC"""
        with self._database.read() as connection:
            batches = _listed(connection, rule, (visitor,))
            runs = {run for batch in batches for run in batch.runs}
            stored = stored_runs_of(connection, sorted(runs))
        moving = {str(run.row["id"]) for run in stored if not run.removed and run.status in MOVING}
        return [batch for batch in batches if moving.intersection(batch.runs)]

    def wanted_by(self, batch: str, visitor: str) -> bool:
        """Whether this visitor requested the batch and did not cancel it."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM batch_requests WHERE batch = ? AND visitor = ? AND withdrawn IS NULL", (batch, visitor)
            ).fetchone()
        return row is not None

    def rename(self, batch: str, title: str) -> None:
        with self._database.write() as connection:
            _existing(connection, batch)
            connection.execute("UPDATE batches SET title = ? WHERE id = ?", (title, batch))

    def delete(self, batch: str) -> None:
        """Forget a batch. Its runs stay."""
        with self._database.write() as connection:
            _existing(connection, batch)
            delete_batch(connection, batch)


def resumable(connection: sqlite3.Connection, of: Sequence[str] | None = None) -> list[str]:
    """The interrupted members that `resume_interrupted` submits again, of all runs or `of` these."""
    if of is not None and not _interrupted(connection, of):  # the query reads every batch
        return []
    query = f"""SELECT DISTINCT m.run FROM members m
        JOIN batch_requests b ON b.batch = m.batch AND b.withdrawn IS NULL AND b.visitor NOT LIKE '{COMMAND}%'
        JOIN runs r ON r.id = m.run AND r.taken = r.attempt AND r.seconds IS NULL
        WHERE (SELECT COUNT(*) FROM requests q WHERE q.run = m.run AND q.kind = 'submit' AND q.at >= b.at) <= ?
        AND NOT EXISTS (SELECT 1 FROM run_requests o
            WHERE o.run = m.run AND o.visitor = b.visitor AND o.withdrawn IS NOT NULL)"""
    runs = [str(row["run"]) for row in connection.execute(query, (MOST_RESUMES,))]
    candidates = [run for run in runs if of is None or run in of]
    return [str(stored.row["id"]) for stored in _interrupted(connection, candidates)]


def withdraw_runs(connection: sqlite3.Connection, runs: Sequence[str], visitor: str, owns_machine: bool) -> Withdrawal:
    """Cancel these runs for one visitor, in whatever batches the visitor requested them."""
    # A row that is withdrawn says that this visitor does not want the run, whatever batch it is in.
    requested = [run for run, visitors in requests.requesters(connection, runs).items() if visitor in visitors]
    connection.executemany(
        """INSERT INTO run_requests VALUES (?, ?, ?, ?) ON CONFLICT (run, visitor)
            DO UPDATE SET withdrawn = excluded.withdrawn""",
        [(run, visitor, time.time(), time.time()) for run in requested],
    )
    for batch in batches_with(connection, runs):
        unended = {str(stored.row["id"]) for stored in _members(connection, batch) if stored.status in UNENDED}
        if unended <= set(runs):  # else the visitor still wants the other members
            _withdraw(connection, batch, visitor)
    stored = [stored for stored in stored_runs_of(connection, runs) if not stored.removed]
    unended_runs = [str(run.row["id"]) for run in stored if run.status in UNENDED]
    return cancel_unwanted(connection, unended_runs, owns_machine, visitor)


def cancel_unwanted(
    connection: sqlite3.Connection, runs: Sequence[str], owns_machine: bool, apart_from: str = ""
) -> Withdrawal:
    """Cancel those of these unended runs that no visitor wants who is still here, apart from this one."""
    here = visits.present(connection) - {MACHINE, apart_from}
    if not owns_machine:
        here.add(MACHINE)  # it never leaves
    wanting = requests.requesters(connection, runs, wanting=True)
    cancelled = []
    kept = []
    for run in runs:
        if here.intersection(wanting.get(run, ())):
            kept.append(run)
        elif requests.cancel(connection, run) == "cancelled":
            cancelled.append(run)
    return Withdrawal(tuple(cancelled), tuple(kept))


def delete_batch(connection: sqlite3.Connection, batch: str) -> None:
    """Forget a batch. Who wanted its runs wants them each by itself from now on."""
    connection.execute(
        """INSERT OR IGNORE INTO run_requests SELECT m.run, r.visitor, r.at, r.withdrawn FROM members m
            JOIN batch_requests r ON r.batch = m.batch WHERE m.batch = ? AND m.run <> ''""",
        (batch,),
    )
    requests.forget_batch(connection, batch)


def batches_with(connection: sqlite3.Connection, runs: Iterable[str]) -> list[str]:
    """The batches that hold one of these runs."""
    query = "SELECT DISTINCT batch FROM members WHERE run IN (SELECT value FROM json_each(?))"
    return [str(row["batch"]) for row in connection.execute(query, (json.dumps(list(runs)),))]


def _record(connection: sqlite3.Connection, batch: str, visitor: str) -> None:
    """Record that this visitor wants the batch. A visitor who cancelled it wants it again."""
    connection.execute(
        """INSERT INTO batch_requests VALUES (?, ?, ?, NULL) ON CONFLICT (batch, visitor)
            DO UPDATE SET withdrawn = NULL, at = excluded.at""",
        (batch, visitor, time.time()),
    )
    connection.execute(
        """DELETE FROM run_requests WHERE visitor = ? AND withdrawn IS NOT NULL
            AND run IN (SELECT run FROM members WHERE batch = ?)""",
        (visitor, batch),
    )
    visits.record(connection, [visitor])


def _withdraw(connection: sqlite3.Connection, batch: str, visitor: str) -> None:
    connection.execute(
        "UPDATE batch_requests SET withdrawn = ? WHERE batch = ? AND visitor = ? AND withdrawn IS NULL",
        (time.time(), batch, visitor),
    )


def _interrupted(connection: sqlite3.Connection, runs: Sequence[str]) -> list[StoredRun]:
    """Those of these runs that are interrupted."""
    return [run for run in stored_runs_of(connection, runs) if not run.removed and run.status == "interrupted"]


def _existing(connection: sqlite3.Connection, batch: str) -> None:
    if connection.execute("SELECT 1 FROM batches WHERE id = ?", (batch,)).fetchone() is None:
        raise UnknownName(f"batch: no {shown(batch)}", "It was never requested in this home, or it was deleted")


def _members(connection: sqlite3.Connection, batch: str) -> list[StoredRun]:
    query = "SELECT run FROM members WHERE batch = ? AND run <> '' AND problem = '' ORDER BY place"
    runs = [str(row["run"]) for row in connection.execute(query, (batch,))]
    stored = {str(run.row["id"]): run for run in stored_runs_of(connection, runs)}
    return [stored[run] for run in runs if run in stored]


def _listed(connection: sqlite3.Connection, rule: str, values: tuple[str, ...]) -> list[ListedBatch]:
    columns = "CAST(id AS TEXT) AS id, kind, title, spec, CAST(at AS REAL) AS at"  # a damaged cell raises no error
    batches = connection.execute(f"SELECT {columns} FROM batches {rule}", values).fetchall()
    ids = json.dumps([row["id"] for row in batches])
    runs: dict[str, list[str]] = {}
    problems: dict[str, dict[int, str]] = {}
    query = """SELECT CAST(batch AS TEXT) AS batch, CAST(place AS INTEGER) AS place, run, problem FROM members
        WHERE batch IN (SELECT value FROM json_each(?)) ORDER BY batch, place"""
    for row in connection.execute(query, (ids,)):
        if row["problem"]:
            problems.setdefault(row["batch"], {})[row["place"]] = str(row["problem"])
        elif row["run"]:
            runs.setdefault(row["batch"], []).append(str(row["run"]))
    visitors: dict[str, list[str]] = {}
    query = """SELECT CAST(batch AS TEXT) AS batch, visitor FROM batch_requests
        WHERE batch IN (SELECT value FROM json_each(?)) ORDER BY at"""
    for row in connection.execute(query, (ids,)):
        visitors.setdefault(row["batch"], []).append(str(row["visitor"]))
    listed = []
    for row in batches:
        batch = str(row["id"])
        texts = (batch, str(row["kind"]), str(row["title"]))
        listed.append(
            ListedBatch(
                *texts,
                spec=mapping(str(row["spec"])) or {},
                at=row["at"] if row["at"] and math.isfinite(row["at"]) else 0.0,
                runs=tuple(runs.get(batch, ())),
                problems=problems.get(batch, {}),
                visitors=tuple(visitors.get(batch, ())),
            )
        )
    return listed
