"""The SQLite file: its tables, its versions, its connections, and its complaints in plain words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from engine.errors import Damaged, HomeError, HomeFull, HomeUnwritable, NewerVersion
from engine.jobs.home import MAKE_ROOM, Home

BUSY_S = 10.0
SEALED = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR")  # nothing can be written, for whatever reason
SPARE = 8  # connections kept open between questions

Migration = tuple[str, ...]
MIGRATIONS: list[Migration] = [  # the n-th leads from version n to n + 1; written once, never changed
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
]


class Database:
    """One file, many threads: each question borrows a connection of its own."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._idle: deque[tuple[sqlite3.Connection, int]] = deque(maxlen=SPARE)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One unmoving picture of the store."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Read, then write, with nobody in between: a deferred transaction would fail at once under load."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            with self._borrowed() as connection:
                connection.execute(begin)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        except sqlite3.DatabaseError as error:
            explain(self.home, error)

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        connection, file = self._open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < SPARE and not isinstance(connection, ReadOnlyConnection):
            self._idle.append((connection, file))
        else:
            connection.close()

    def _open(self) -> tuple[sqlite3.Connection, int]:
        file = self._file()
        while self._idle:
            try:
                connection, known = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if known == file:
                return connection, file
            connection.close()  # the file was moved aside: writing on would be writing into nothing
        connection = connect(Home.find(self.home.path))
        return connection, self._file()

    def _file(self) -> int:
        try:
            return os.stat(self.home.database).st_ino
        except OSError:
            return -1


class ReadOnlyConnection(sqlite3.Connection):
    """A look at a store beside which nothing can be written, not even the files SQLite reads with; never kept."""


def connect(home: Home) -> sqlite3.Connection:
    """A connection to a store of this version; older ones are led up, newer ones refused."""
    try:
        return _led_up(home)
    except sqlite3.OperationalError as error:
        if not _at_rest(home, error):
            raise
        return _glance(home, error)


def _at_rest(home: Home, error: sqlite3.OperationalError) -> bool:
    """Nothing can be written here, and nobody has left anything in the log: the file alone tells everything."""
    log = home.database.with_name(f"{home.database.name}-wal")
    try:
        whole = home.database.stat().st_size > 0 and not (log.exists() and log.stat().st_size)
    except OSError:
        return False
    return whole and _named(error).startswith(SEALED)


def _glance(home: Home, error: sqlite3.OperationalError) -> sqlite3.Connection:
    place = f"{home.database.as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(place, uri=True, isolation_level=None, factory=ReadOnlyConnection)
    try:
        connection.row_factory = sqlite3.Row
        if _outdated(home, connection):
            raise error
    except BaseException:
        connection.close()
        raise
    return connection


def _led_up(home: Home) -> sqlite3.Connection:
    connection = sqlite3.connect(home.database, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        outdated = _outdated(home, connection)  # before anything is written: a file of somebody else stays as it is
        _use_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if outdated:
            _migrate(home, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Readers never wait for the writer. Two first openings at once may collide whatever the busy timeout."""
    last = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _named(error).startswith("SQLITE_BUSY") or time.monotonic() > last:
                raise
            time.sleep(0.01)


def _outdated(home: Home, connection: sqlite3.Connection) -> bool:
    # one statement, one picture: another process may be making the tables at this moment
    asked = "SELECT user_version, EXISTS (SELECT 1 FROM sqlite_master) FROM pragma_user_version"
    version, foreign = map(int, connection.execute(asked).fetchone())
    if version > len(MIGRATIONS):
        raise NewerVersion(
            f"{home.database}: has version {version}, this LeakLens knows up to {len(MIGRATIONS)}",
            "Update LeakLens, or choose another folder with LEAKLENS_HOME",
        )
    if version == 0 and foreign:
        raise damaged(home, "holds tables of another program")
    return version < len(MIGRATIONS)


def _migrate(home: Home, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        _outdated(home, connection)
        for migration in MIGRATIONS[_version(connection) :]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def explain(home: Home, error: sqlite3.DatabaseError) -> NoReturn:
    """Say what SQLite means and what to do; our own mistakes stay what they are."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
        raise error
    raise _told(home, error) from error


def _told(home: Home, error: sqlite3.DatabaseError) -> HomeError:
    name = _named(error)
    if name == "SQLITE_FULL" or (name.startswith(SEALED) and _full(home)):
        return HomeFull(f"{home.path}: no space is left", MAKE_ROOM)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return HomeUnwritable(
            f"{home.database}: has been held by another program for {BUSY_S:g} seconds",
            "End that program, then try again",
        )
    if name.startswith((*SEALED, "SQLITE_PERM", "SQLITE_AUTH")):
        return HomeUnwritable(
            f"{home.database}: cannot be written: {error}",
            "Choose another folder with LEAKLENS_HOME, or correct its permissions",
        )
    return damaged(home, f"cannot be read: {error}")


def _full(home: Home) -> bool:
    """A disk made for reading alone has no free byte either, and deleting is no remedy there."""
    return os.access(home.path, os.W_OK) and shutil.disk_usage(home.path).free < 1 << 20


def damaged(home: Home, reason: str) -> Damaged:
    return Damaged(
        f"{home.database}: {reason}",
        f"Move {home.database.name} and the files {home.database.name}-* beside it to another folder, and a new "
        f"store is begun; nothing was overwritten, and the payloads in {home.payloads} stay",
    )


def _named(error: sqlite3.DatabaseError) -> str:
    return str(getattr(error, "sqlite_errorname", ""))
