"""Who is here: the visitors with an open tab, and the commands that wait for their runs."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterable

from engine.jobs.database import Database
from engine.jobs.process_id import ProcessId, machine, start_time

LEFT_S = 29 * 60.0  # after the last tab; pictures are promised to be deleted within half an hour
COMMAND = "command-"  # begins the visitor of a command
ALWAYS = 1e12  # a command is here for as long as its process lives


class Visits:
    """The visits of one home. Each server writes those of its own visitors."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def see(self, visitors: Iterable[str], at: float | None = None) -> None:
        """Record that these visitors have an open tab now."""
        names = list(visitors)
        if names:
            with self._database.write() as connection:
                record(connection, names, at)

    def command(self) -> str:
        """A visitor for this process: a command, which is here until it ends."""
        visitor = f"{COMMAND}{secrets.token_hex(6)}"
        self.see([visitor], ALWAYS)
        return visitor

    def present(self) -> set[str]:
        """The visitors who are here, or left a short while ago."""
        with self._database.read() as connection:
            return present(connection)


def record(connection: sqlite3.Connection, visitors: Iterable[str], at: float | None = None) -> None:
    """Record that these visitors of this process are here. A command stays for as long as its process lives."""
    process = ProcessId.me()
    moment = time.time() if at is None else at
    rows = [(visitor, process.place, process.pid, process.start, moment) for visitor in visitors]
    connection.executemany(
        f"""INSERT INTO visits VALUES (?, ?, ?, ?, ?) ON CONFLICT (visitor, place, pid, start)
            DO UPDATE SET seen = CASE WHEN seen >= {ALWAYS} THEN seen ELSE excluded.seen END""",
        rows,
    )


def present(connection: sqlite3.Connection) -> set[str]:
    """The visitors of living servers and commands whose last tab was open a short while ago."""
    earliest = time.time() - LEFT_S
    return {str(row["visitor"]) for row in _visits(connection) if row["seen"] > earliest and _alive(row)}


def forget_dead(connection: sqlite3.Connection) -> None:
    """Remove the visits of processes that ended, and of visitors who left."""
    earliest = time.time() - LEFT_S
    for row in _visits(connection):
        if not _alive(row) or row["seen"] <= earliest:
            key = (row["visitor"], row["place"], row["pid"], row["start"])
            connection.execute("DELETE FROM visits WHERE visitor = ? AND place = ? AND pid = ? AND start = ?", key)


def _visits(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    """Every visit. The casts keep a damaged number from raising an error."""
    columns = "visitor, CAST(place AS TEXT) AS place, CAST(pid AS INTEGER) AS pid, CAST(start AS TEXT) AS start"
    return connection.execute(f"SELECT {columns}, CAST(seen AS REAL) AS seen FROM visits").fetchall()


def _alive(row: sqlite3.Row) -> bool:
    """Whether the process of a visit lives. On another machine only a recent visit shows it."""
    if row["place"] != machine():
        return bool(row["seen"] < ALWAYS)
    return bool(start_time(row["pid"]) == row["start"])
