"""The versions of the store, and the step from one to the next.

A migration must not surprise a supervisor of an older version: it would write rows that lack what this version needs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.errors import HomeUnwritable
from engine.jobs.home import Home, locked
from engine.jobs.process_id import ProcessId

Migration = tuple[str, ...]
MIGRATIONS: list[Migration] = [  # number n raises version n to n + 1; a published migration never changes
    (
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            spec TEXT NOT NULL,
            options TEXT NOT NULL,
            attempt INTEGER NOT NULL,           -- the submit request in force
            taken INTEGER NOT NULL DEFAULT 0,   -- the submit request last served
            told INTEGER NOT NULL DEFAULT 0,    -- the highest event number ever given
            text INTEGER NOT NULL DEFAULT 0,    -- bytes of its events
            edition TEXT NOT NULL               -- changes when events already told are taken back
        )""",
        "CREATE INDEX waiting ON runs (attempt) WHERE taken < attempt",
        """CREATE TABLE events (
            run TEXT NOT NULL,
            number INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            at REAL NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (run, number)
        ) WITHOUT ROWID""",
        """CREATE TABLE requests (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            run TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('submit', 'cancel', 'delete')),
            at REAL NOT NULL
        )""",
        "CREATE INDEX asked ON requests (kind, run, number)",
        """CREATE TABLE leases (
            run TEXT PRIMARY KEY,
            token TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            place TEXT NOT NULL,
            pid INTEGER NOT NULL,
            start TEXT NOT NULL,
            beat REAL NOT NULL
        )""",
    ),
    (
        """CREATE TABLE batches (
            id TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            title TEXT NOT NULL,
            spec TEXT NOT NULL,                 -- JSON: what was requested, for the screen that opens it again
            at REAL NOT NULL                    -- of the first request
        )""",
        """CREATE TABLE members (
            batch TEXT NOT NULL,
            place INTEGER NOT NULL,
            run TEXT NOT NULL,                  -- empty for a member that could not be requested
            problem TEXT NOT NULL,              -- why it could not be requested
            PRIMARY KEY (batch, place)
        ) WITHOUT ROWID""",
        "CREATE INDEX batches_of_run ON members (run)",
        """CREATE TABLE batch_requests (
            batch TEXT NOT NULL,
            visitor TEXT NOT NULL,
            at REAL NOT NULL,
            withdrawn REAL,                     -- when this visitor cancelled
            PRIMARY KEY (batch, visitor)
        ) WITHOUT ROWID""",
        """CREATE TABLE run_requests (
            run TEXT NOT NULL,                  -- requested by itself
            visitor TEXT NOT NULL,
            at REAL NOT NULL,
            withdrawn REAL,                     -- when this visitor cancelled the run, in whatever batch it is
            PRIMARY KEY (run, visitor)
        ) WITHOUT ROWID""",
        "CREATE TABLE served (visitor TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
        """CREATE TABLE owners (
            what TEXT NOT NULL,
            visitor TEXT NOT NULL,
            PRIMARY KEY (what, visitor)
        ) WITHOUT ROWID""",
        """CREATE TABLE visits (
            visitor TEXT NOT NULL,
            place TEXT NOT NULL,                -- the server that the visitor opened the page of
            pid INTEGER NOT NULL,
            start TEXT NOT NULL,
            seen REAL NOT NULL,                 -- when a tab of this visitor was last open
            PRIMARY KEY (visitor, place, pid, start)
        ) WITHOUT ROWID""",
        "ALTER TABLE runs ADD COLUMN instant INTEGER NOT NULL DEFAULT 0",  # an attack that does not search
        "ALTER TABLE runs ADD COLUMN work TEXT NOT NULL DEFAULT ''",  # runs with the same work take about as long
        "ALTER TABLE runs ADD COLUMN seconds REAL",  # that the finished run took
        "CREATE INDEX paces ON runs (work) WHERE seconds IS NOT NULL",
        """INSERT OR IGNORE INTO run_requests SELECT id, COALESCE(NULLIF(visitor, ''), 'machine'), 0, NULL FROM (
            SELECT id, CASE WHEN json_valid(options) THEN json_extract(options, '$.visitor') END AS visitor FROM runs
        )""",
    ),
]


def migrate(home: Home, connection: sqlite3.Connection, version: int) -> None:
    """Raise a store of this version to the newest. Call it in a transaction. Refuses while an older program works."""
    with _no_other_program(home, connection, version):
        for migration in MIGRATIONS[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextmanager
def _no_other_program(home: Home, connection: sqlite3.Connection, version: int) -> Iterator[None]:
    """Raise an error that names the process if another program works on this home. Keeps a new one from starting."""
    if version == 0:  # the store is new, so no older program knows it
        yield
        return
    for row in connection.execute("SELECT * FROM leases"):
        process = ProcessId(str(row["place"]), _whole(row["pid"]), str(row["start"]))
        if process.alive(_number(row["beat"])) and process != ProcessId.me():
            raise _at_work(home, process.pid)
    with ExitStack() as locks:
        for path in sorted(home.path.glob(".spare-*")):
            file = locks.enter_context(path.open("ab"))
            if not locked(file):
                raise _at_work(home, _owner_of_lock(path))
        yield


def _at_work(home: Home, pid: int | None) -> HomeUnwritable:
    name = f"process {pid}" if pid else "another process"
    rule = f"{home.database}: must be upgraded, and {name} of an earlier LeakLens works on it; nothing was changed"
    return HomeUnwritable(rule, "End that program, then try again, or choose another folder with LEAKLENS_HOME")


def _owner_of_lock(path: Path) -> int | None:
    """The process that locked a file, where the system lists the locks."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
        number = os.stat(path).st_ino
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{number}"):
            return int(words[4])
    return None


def _whole(value: object) -> int:
    return value if type(value) is int else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
