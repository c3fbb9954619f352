"""Who owns an uploaded picture. Names are hashes of the content, so two visitors with one photo share it.

Privacy: a visitor may see a picture, and whatever was made from it, only as one of its owners. When the last owner
leaves, the picture goes with every attack on it. Without this, photos of earlier visitors would stay on the machine.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from engine.errors import HomeError
from engine.images import clean_upload
from engine.jobs import batches, requests, visits
from engine.jobs.database import Database
from engine.jobs.requests import MACHINE
from engine.jobs.uploads import NAME, UploadedPictures, content_name

OWN_PICTURE = re.compile(r"own-([0-9a-f]{16})")


def own_pictures(spec: Mapping[str, Any]) -> frozenset[str]:
    """The names of the uploaded pictures anywhere in a spec."""
    return frozenset(OWN_PICTURE.findall(str(spec)))


@dataclass(frozen=True)
class Departure:
    """What went with a visitor who gave a picture up."""

    deleted: tuple[str, ...] = ()  # attacks
    shared: bool = False  # another visitor owns the picture, too: nothing was deleted


class Owners:
    """The owners of the uploaded pictures of one home."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pictures = UploadedPictures(database.home)

    def add(self, data: bytes, visitor: str = MACHINE) -> str:
        """Clean a picture, store it for this visitor and return its name.

        The owner is stored before the picture: after a crash between the two, no picture is left without its owner.
        """
        picture = clean_upload(data)
        name = content_name(picture)
        with self._database.write() as connection:
            if not _owners(connection, name) and name in self._pictures.names():  # it was there before owners were
                _add(connection, name, MACHINE)
            _add(connection, name, visitor)
            visits.record(connection, [visitor])
        self._pictures.keep(picture)
        with self._database.write() as connection:
            if not _owners(connection, name):  # the visitor gave it up while it was written
                self._pictures.remove(name)
        return name

    def pictures(self, visitor: str) -> tuple[str, ...]:
        """The pictures of this visitor, the newest first."""
        with self._database.read() as connection:
            return tuple(name for name in self._pictures.names() if _owns(connection, name, visitor))

    def owns(self, names: Iterable[str], visitor: str) -> bool:
        """Whether this visitor owns all these pictures."""
        names = tuple(names)
        if not names:
            return True
        with self._database.read() as connection:
            return all(_owns(connection, name, visitor) for name in names)

    def leave(self, name: str, visitor: str) -> Departure:
        """Take a picture from a visitor. With its last owner go the picture, its attacks and their batches."""
        with self._database.write() as connection:
            departure = self._leave(connection, name, visitor)
        return departure

    def _leave(self, connection: sqlite3.Connection, name: str, visitor: str) -> Departure:
        if not _owns(connection, name, visitor):
            return Departure()
        connection.execute("DELETE FROM owners WHERE what = ? AND CAST(visitor AS TEXT) = ?", (_what(name), visitor))
        query = "SELECT id FROM runs WHERE instr(spec, ?) AND id NOT NULL"
        runs = [str(row["id"]) for row in connection.execute(query, (f"own-{name}",))]
        if _owners(connection, name):
            batches.withdraw_runs(connection, runs, visitor, owns_machine=False)
            return Departure(shared=True)
        requests.request_deletion(connection, runs)
        named = connection.execute("SELECT id FROM batches WHERE instr(spec, ?)", (f"own-{name}",))
        for batch in {*batches.batches_with(connection, runs), *(str(row["id"]) for row in named)}:
            batches.delete_batch(connection, batch)
        self._pictures.remove(name)
        return Departure(deleted=tuple(runs))

    def drop_left(self) -> list[str]:
        """Take the pictures from all visitors who left. Returns the deleted attacks. The machine never leaves.

        A picture that cannot be deleted now is tried again, and keeps no other one here.
        """
        self._pictures.remove_stale_files()
        with self._database.write() as connection:
            visits.forget_dead(connection)
            here = visits.present(connection) | {MACHINE}
            rows = connection.execute("SELECT what, CAST(visitor AS TEXT) AS visitor FROM owners").fetchall()
        deleted: list[str] = []
        for row in rows:
            name = str(row["what"]).removeprefix("picture/")
            if row["visitor"] not in here and NAME.fullmatch(name):
                with suppress(HomeError), self._database.write() as connection:
                    deleted += self._leave(connection, name, row["visitor"]).deleted
        return deleted


def _what(name: str) -> str:
    return f"picture/{name}"


def _add(connection: sqlite3.Connection, name: str, visitor: str) -> None:
    connection.execute("INSERT OR IGNORE INTO owners VALUES (?, ?)", (_what(name), visitor))


def _owners(connection: sqlite3.Connection, name: str) -> set[str]:
    rows = connection.execute("SELECT CAST(visitor AS TEXT) AS visitor FROM owners WHERE what = ?", (_what(name),))
    return {str(row["visitor"]) for row in rows}


def _owns(connection: sqlite3.Connection, name: str, visitor: str) -> bool:
    """A picture without an owner was brought before owners existed: it belongs to the machine."""
    return visitor in (_owners(connection, name) or {MACHINE})
