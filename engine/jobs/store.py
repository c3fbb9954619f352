"""The store: what was asked of runs and what they told, in one file that any thread and any process may open."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from engine.errors import BadInput, Damaged, HomeError, HomeFull, UnknownName, shown
from engine.events import Event, Finished, decode
from engine.jobs import leases, payloads
from engine.jobs.database import Database, damaged
from engine.jobs.fair_queue import in_turn
from engine.jobs.home import Home, safe, size
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.jobs.status import RELEASED, ListedRun, Status, StoredRun, mapping, stored_run, stored_runs, stored_runs_of

if TYPE_CHECKING:
    import numpy

AGAIN: tuple[Status, ...] = ("failed", "cancelled", "interrupted")


class Store:
    """Everything known about every run."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = Home.find(home)
        self._database = Database(self.home)
        with self._database.read():  # what cannot be opened is refused here
            pass
        with suppress(HomeError):  # a deletion that cannot be completed keeps nobody from the rest
            self.tidy()

    def close(self) -> None:
        self._database.close()

    # --- what anyone may ask -----------------------------------------------------------------------------------

    def submit(self, run: str, spec: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> Status:
        """Ask for a run. Asked again it is the same one: finished stays, what stopped begins a new attempt."""
        return self.submit_all({run: spec}, options)[run]

    def submit_all(
        self, specs: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any] | None = None
    ) -> dict[str, Status]:
        """Ask for several runs, all of them or none; they wait in the order of their names here."""
        for run in specs:
            safe("run", run)
        with self._database.write() as connection:
            return {run: self._ask(connection, run, spec, options or {}) for run, spec in specs.items()}

    def _ask(
        self, connection: sqlite3.Connection, run: str, spec: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Status:
        known = stored_run(connection, run)
        if known and not known.removed and known.status not in AGAIN:
            return known.status
        self.home.room()
        attempt = _request(connection, run, "submit")
        connection.execute(
            """INSERT INTO runs (id, spec, options, attempt, edition) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id)
                DO UPDATE SET spec = excluded.spec, options = excluded.options, attempt = excluded.attempt""",
            (run, _json(spec), _json(options), attempt, secrets.token_hex(4)),
        )
        return "queued"

    def cancel(self, run: str) -> Status:
        """Stop a run, or take it out of the queue; what has ended stays as it ended."""
        with self._database.write() as connection:
            known = _known(connection, run)
            if known.status in ("queued", "running", "interrupted"):
                _request(connection, run, "cancel")
            return _known(connection, run).status

    def delete(self, run: str) -> None:
        """Remove a run with its events and payloads; a running one is refused."""
        if self.status(run) == "running":
            raise BadInput(f"run {run}: is running", "Cancel it first, then delete it")
        try:
            self._ask_away(run)
        except HomeFull:  # even a small row needs space, and deleting is the way to make some
            payloads.bury(self.home, run)
            payloads.empty_trash(self.home)
            self._ask_away(run)
        self.tidy()

    def _ask_away(self, run: str) -> None:
        with self._database.write() as connection:
            _request(connection, run, "delete")

    def status(self, run: str) -> Status:
        with self._database.read() as connection:
            return _known(connection, run).status

    def statuses(self, runs: Iterable[str]) -> dict[str, Status]:
        """How several runs stand, all at the same moment; those that are unknown are left out."""
        with self._database.read() as connection:
            return {str(one.row["id"]): one.status for one in stored_runs_of(connection, list(runs)) if not one.removed}

    def run(self, run: str) -> ListedRun:
        """One run as the list shows it."""
        with self._database.read() as connection:
            found = _known(connection, run)
            if mapping(found.row["spec"]) is None or mapping(found.row["options"]) is None:
                raise Damaged(f"run {run}: its question cannot be read", "Delete it, then ask again")
            queue = _queue(connection, stored_runs(connection)) if found.status == "queued" else []
        return found.listed(queue.index(run) + 1 if run in queue else None, size(self.home.folder(run)))

    def runs(self) -> list[ListedRun]:
        """Every run, the newest question first."""
        with self._database.read() as connection:
            known = stored_runs(connection)
            place = {run: number for number, run in enumerate(_queue(connection, known), start=1)}
        rows = [(one, str(one.row["id"])) for one in reversed(known)]
        return [one.listed(place.get(run), size(self.home.folder(run))) for one, run in rows]

    def queue(self) -> list[str]:
        """Runs that wait for a slot, the next one first."""
        with self._database.read() as connection:
            return _queue(connection, stored_runs(connection))

    def bodies(self, run: str, after: int = 0) -> list[tuple[int, dict[str, Any]]]:
        """Events as JSON with their numbers, those after a number only."""
        with self._database.read() as connection:
            _known(connection, run)
            rows = connection.execute(
                "SELECT number, body FROM events WHERE run = ? AND number > ? ORDER BY number", (run, after)
            ).fetchall()
        try:
            bodies = json.loads(f"[{','.join(row['body'] for row in rows)}]")
        except (ValueError, TypeError) as error:
            raise damaged(self.home, f"an event of run {run} cannot be read") from error
        return [(row["number"], body) for row, body in zip(rows, bodies, strict=True)]

    def events(self, run: str, after: int = 0) -> list[tuple[int, Event]]:
        """Events with their numbers. Numbers only rise; `Listed.edition` tells when earlier events were taken back."""
        return [(number, decode(body)) for number, body in self.bodies(run, after)]

    def payload(self, run: str, name: str) -> dict[str, numpy.ndarray[Any, Any]]:
        """The arrays that a Kept event put aside under this name."""
        return payloads.read(self.home, run, name)

    def used(self) -> int:
        """Bytes of everything under the home."""
        return self.home.used()

    def tidy(self) -> None:
        """Complete every deletion, also those that an end of their process left half done.

        The rows go first, then the files, at last the request. Files of runs that are unknown here stay: they may
        belong to a database that was moved aside to be mended.
        """
        with self._database.read() as connection:
            rows = connection.execute("SELECT run, MAX(number) FROM requests WHERE kind = 'delete' GROUP BY run")
            asked = [(str(run), int(number)) for run, number in rows]
        for run, number in asked:
            with self._database.write() as connection:
                away = _forget(connection, run, number)
            if away:
                with self._database.write() as connection:
                    _clear(connection, self.home, run, number)
        payloads.empty_trash(self.home)

    # --- what a supervisor does --------------------------------------------------------------------------------

    def take(self, holder: ProcessId, slots: int, only: Container[str] | None = None) -> Lease | None:
        """In one transaction: the next waiting run in turn, a slot, the lease, and the way back to its checkpoint."""
        with self._database.read() as connection:
            if leases.following(connection, slots, only) is None:  # those who wait must not hold up those who write
                return None
        with self._database.write() as connection:
            return leases.take(connection, self.home, holder, slots, only)

    def demand(self) -> int:
        """Runs that run or wait, over all supervisors of this home."""
        with self._database.read() as connection:
            return leases.demand(connection)

    def append(self, lease: Lease, events: Sequence[Event]) -> None:
        """Write what a run told, all of it or nothing; LeaseLost for whoever no longer holds it."""
        with self._database.write() as connection:
            leases.append(connection, lease, events)
        if any(isinstance(event, Finished) or getattr(event, "kind", "") == "checkpoint" for event in events):
            with self._database.read() as connection:
                outdated = leases.outdated_checkpoints(connection, lease.run)
            payloads.remove(self.home, lease.run, outdated)

    def rewind(self, lease: Lease) -> Lease:
        with self._database.write() as connection:
            return leases.rewind(connection, self.home, lease)

    def renew(self, lease: Lease) -> None:
        with self._database.write() as connection:
            leases.renew(connection, lease)

    def let_go(self, lease: Lease) -> None:
        """Hold it no longer, even where the disk is too full to write that down: this process knows."""
        RELEASED.add(lease.token)

    def release(self, lease: Lease) -> None:
        self.let_go(lease)
        with self._database.write() as connection:
            leases.release(connection, lease)

    def unwanted(self, lease: Lease) -> bool:
        with self._database.read() as connection:
            return leases.unwanted(connection, lease)


def _request(connection: sqlite3.Connection, run: str, kind: str) -> int:
    asked = connection.execute("INSERT INTO requests (run, kind, at) VALUES (?, ?, ?)", (run, kind, time.time()))
    return int(asked.lastrowid or 0)


def _known(connection: sqlite3.Connection, run: str) -> StoredRun:
    found = stored_run(connection, run)
    return found if found and not found.removed else _unknown(run)


def _unknown(run: str) -> NoReturn:
    raise UnknownName(f"run: no {shown(run)}", "It was never asked for in this home, or it was deleted")


def _queue(connection: sqlite3.Connection, known: Sequence[StoredRun]) -> list[str]:
    waiting = [str(one.row["id"]) for one in known if one.status == "queued"]
    return in_turn(connection, waiting, [str(one.row["id"]) for one in known if one.held])


def _forget(connection: sqlite3.Connection, run: str, removal: int) -> bool:
    """Remove the rows of a run once nobody works on it; a question asked since then begins from nothing."""
    found = stored_run(connection, run)
    if not _asked(connection, removal) or (found and found.held):
        return False
    connection.execute("DELETE FROM events WHERE run = ?", (run,))
    connection.execute("DELETE FROM leases WHERE run = ?", (run,))
    if found and not found.removed:
        fresh = "UPDATE runs SET taken = 0, told = 0, text = 0, edition = ? WHERE id = ?"
        connection.execute(fresh, (secrets.token_hex(4), run))
    else:
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
    return True


def _clear(connection: sqlite3.Connection, home: Home, run: str, removal: int) -> None:
    """Remove the files, and with them the request: while it stands, nobody begins the run anew."""
    if _asked(connection, removal):  # else another process was faster, and the files may be new ones
        payloads.bury(home, run)
        connection.execute("DELETE FROM requests WHERE run = ? AND number <= ?", (run, removal))


def _asked(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("SELECT 1 FROM requests WHERE number = ?", (number,)).fetchone() is not None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)
