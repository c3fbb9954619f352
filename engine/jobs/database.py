"""The SQLite file of the store: its tables, versions and connections, and its errors as sentences with a fix."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, NoReturn, TypeVar

from engine.errors import Damaged, HomeError, HomeFull, HomeUnwritable, NewerVersion
from engine.jobs import migrations
from engine.jobs.home import FREE_SPACE_REMEDY, Home
from engine.open_files import at_limit, too_many_files

T = TypeVar("T")
BUSY_S = 10.0
UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR")  # nothing can be written, for whatever reason
IDLE_CONNECTIONS = 8  # kept open between transactions


class SharedRead(Generic[T]):
    """Threads that ask at the same time share one answer. It is read after each of them has asked, so it is never old.

    A class opens the list of runs at once. Thirty threads that each read a thousand rows wait for each other.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._begun = 0  # the number of the last read that began
        self._answer: tuple[int, T] | None = None  # the number of a read, and what it read
        self._counting = threading.Lock()
        self._reading = threading.Lock()

    def __call__(self) -> T:
        with self._counting:
            least = self._begun + 1
        with self._reading:
            if self._answer is None or self._answer[0] < least:
                with self._counting:
                    self._begun += 1
                self._answer = (self._begun, self._read())
            return self._answer[1]


class Database:
    """One file for many threads. Each transaction uses a connection that no other thread uses meanwhile."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._idle: deque[tuple[sqlite3.Connection, int]] = deque(maxlen=IDLE_CONNECTIONS)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A consistent snapshot of the store."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Read, then write, with no other writer in between. A deferred transaction would fail under load."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def empty_log(self) -> None:
        """Write the log into the file, and empty it: it still holds the rows that were deleted."""
        with suppress(sqlite3.OperationalError), self._connection() as connection:  # a reader may keep it for now
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            with self._connection() as connection:
                connection.execute(begin)
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
        except sqlite3.DatabaseError as error:
            raise_explained(self.home, error)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection, file = self._open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < IDLE_CONNECTIONS and not isinstance(connection, ReadOnlyConnection):
            self._idle.append((connection, file))
        else:
            connection.close()

    def _open(self) -> tuple[sqlite3.Connection, int]:
        """A connection, and the number of the file that it is connected to."""
        current = self._file_number()
        while self._idle:
            try:
                connection, file = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if file == current:
                return connection, current
            connection.close()  # the file was moved away: the new file would miss what is written here
        connection = connect(Home.find(self.home.path))
        return connection, self._file_number()

    def _file_number(self) -> int:
        try:
            return os.stat(self.home.database).st_ino
        except OSError:
            return -1


class ReadOnlyConnection(sqlite3.Connection):
    """A connection to a store in a folder where SQLite cannot even create the files it reads with. It is not reused."""


def connect(home: Home) -> sqlite3.Connection:
    """A connection to a store of this version. An older store is migrated, a newer one is refused."""
    try:
        return _connect_to_write(home)
    except sqlite3.OperationalError as error:
        if not _complete_without_log(home, error):
            raise
        return _connect_to_read(home, error)


def _complete_without_log(home: Home, error: sqlite3.OperationalError) -> bool:
    """True if nothing can be written and the log is empty, so that the database file alone holds everything."""
    log = home.database.with_name(f"{home.database.name}-wal")
    try:
        complete = home.database.stat().st_size > 0 and not (log.exists() and log.stat().st_size)
    except OSError:
        return False
    return complete and _error_name(error).startswith(UNWRITABLE)


def _connect_to_read(home: Home, error: sqlite3.OperationalError) -> sqlite3.Connection:
    address = f"{home.database.as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, factory=ReadOnlyConnection)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        if _outdated(home, connection):
            raise error
    except BaseException:
        connection.close()
        raise
    return connection


def _text(stored: bytes) -> str:
    """A text column. Damaged bytes must not end a query: they would hide every other run."""
    return stored.decode("utf-8", errors="replace")


def _connect_to_write(home: Home) -> sqlite3.Connection:
    connection = sqlite3.connect(home.database, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        outdated = _outdated(home, connection)  # before any write, so that a file of another program stays unchanged
        _use_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted may be a picture of a visitor
        if outdated:
            _migrate(home, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Turn on WAL mode, in which readers never wait for the writer.

    Two processes that open a new store at once may collide, whatever the busy timeout is. Therefore it is retried.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _error_name(error).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _outdated(home: Home, connection: sqlite3.Connection) -> bool:
    # One statement, so one snapshot: another process may be creating the tables at this moment.
    query = "SELECT user_version, EXISTS (SELECT 1 FROM sqlite_master) FROM pragma_user_version"
    version, has_tables = map(int, connection.execute(query).fetchone())
    if version > len(migrations.MIGRATIONS):
        raise NewerVersion(
            f"{home.database}: has version {version}, this LeakLens knows up to {len(migrations.MIGRATIONS)}",
            "Update LeakLens, or choose another folder with LEAKLENS_HOME",
        )
    if version < 0 or (version == 0 and has_tables):
        raise damaged(home, "holds tables of another program")
    return version < len(migrations.MIGRATIONS)


def _migrate(home: Home, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _outdated(home, connection):  # else another process migrated it meanwhile
            migrations.migrate(home, connection, _version(connection))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def raise_explained(home: Home, error: sqlite3.DatabaseError) -> NoReturn:
    """Raise an SQLite error as a sentence with a fix. Errors in our own SQL are raised unchanged."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
        raise error
    raise _home_error(home, error) from error


def _home_error(home: Home, error: sqlite3.DatabaseError) -> HomeError:
    name = _error_name(error)
    if name == "SQLITE_FULL" or (name.startswith(UNWRITABLE) and _disk_full(home)):
        return HomeFull(f"{home.path}: no space is left", FREE_SPACE_REMEDY)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return HomeUnwritable(
            f"{home.database}: another program has locked it for {BUSY_S:g} seconds",
            "End that program, then try again",
        )
    if name.startswith("SQLITE_CANTOPEN") and at_limit():
        return too_many_files()
    if name.startswith((*UNWRITABLE, "SQLITE_PERM", "SQLITE_AUTH")):
        return HomeUnwritable(
            f"{home.database}: cannot be written: {error}",
            "Choose another folder with LEAKLENS_HOME, or correct its permissions",
        )
    return damaged(home, f"cannot be read: {error}")


def _disk_full(home: Home) -> bool:
    """False for a read-only disk: it has no free byte either, but deleting runs does not help there."""
    return os.access(home.path, os.W_OK) and shutil.disk_usage(home.path).free < 1 << 20


def damaged(home: Home, reason: str) -> Damaged:
    return Damaged(
        f"{home.database}: {reason}",
        f"Move {home.database.name} and the files {home.database.name}-* next to it to another folder. LeakLens then "
        f"creates a new store; nothing was overwritten, and the payloads in {home.payloads} stay",
    )


def _error_name(error: sqlite3.DatabaseError) -> str:
    return str(getattr(error, "sqlite_errorname", ""))
