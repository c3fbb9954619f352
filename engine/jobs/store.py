"""The store: requests for runs and their events, in one file that any thread and any process may open."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput, Damaged, HomeError, HomeFull
from engine.events import Event, Finished, decode
from engine.jobs import leases, pace, payloads, requests
from engine.jobs.batches import Batches, Withdrawal, withdraw_runs
from engine.jobs.database import Database, SharedRead, damaged
from engine.jobs.fair_queue import WaitingRun
from engine.jobs.home import Home, folder_size, safe_name
from engine.jobs.leases import Lease
from engine.jobs.owners import Owners
from engine.jobs.process_id import ProcessId
from engine.jobs.requests import MACHINE
from engine.jobs.status import (
    RELEASED,
    ListedRun,
    Status,
    StoredRun,
    require_printable,
    stamps,
    stored_runs_of,
    strict_json,
    unfinished_runs,
)
from engine.jobs.visits import Visits

if TYPE_CHECKING:
    import numpy


class Store:
    """All runs of one home, with their requests, events and payloads."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = Home.find(home)
        self._database = Database(self.home)
        self._list_runs = SharedRead(self._read_runs)
        self._finished: dict[str, ListedRun] = {}  # by stamp
        self.batches = Batches(self._database)
        self.owners = Owners(self._database)
        self.visits = Visits(self._database)
        with self._database.read():  # a store that cannot be opened is refused here
            pass
        with suppress(HomeError):  # a deletion that cannot be completed must not block everything else
            self.complete_deletions()

    def close(self) -> None:
        self._database.close()

    # --- for every reader ----------------------------------------------------------------------------------------

    def submit(
        self,
        run: str,
        spec: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        visitor: str = MACHINE,
    ) -> Status:
        """Submit a run. A finished run stays finished. A failed, cancelled or interrupted one gets a new attempt."""
        return self.submit_all({run: spec}, options, visitor)[run]

    def submit_all(
        self, specs: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any] | None = None, visitor: str = MACHINE
    ) -> dict[str, Status]:
        """Submit several runs, all of them or none. They join the queue in the order given."""
        for run in specs:
            safe_name("run", run)
        statuses: dict[str, Status] = {}
        with self._database.write() as connection:
            for run, spec in specs.items():
                statuses[run] = requests.submit(connection, self.home, run, spec, options or {})
                requests.record_visitor(connection, run, visitor)
        return statuses

    def cancel(self, run: str) -> Status:
        """Stop a run, or take it out of the queue, no matter whose it is. One that has ended keeps its status."""
        with self._database.write() as connection:
            return requests.cancel(connection, run)

    def withdraw(self, runs: Sequence[str], visitor: str, owns_machine: bool = False) -> Withdrawal:
        """Cancel these runs for one visitor. Those that someone else wants continue."""
        with self._database.write() as connection:
            return withdraw_runs(connection, runs, visitor, owns_machine)

    def requesters(self, runs: Sequence[str], wanting: bool = False, kind: str | None = None) -> dict[str, list[str]]:
        """The visitors who requested each run, by itself or in a batch (of this kind). `wanting`: who still do."""
        with self._database.read() as connection:
            return requests.requesters(connection, runs, wanting, kind)

    def delete(self, run: str) -> None:
        """Remove a run with its events and payloads. A running run is refused."""
        if self.status(run) == "running":
            raise BadInput(f"run {run}: is running", "Cancel it first, then delete it")
        try:
            self._request_deletion(run)
        except HomeFull:  # even a small row needs space, so the payloads go first
            payloads.move_to_trash(self.home, run)
            payloads.empty_trash(self.home)
            self._request_deletion(run)
        self.complete_deletions()

    def _request_deletion(self, run: str) -> None:
        with self._database.write() as connection:
            requests.request_deletion(connection, [run])

    def status(self, run: str) -> Status:
        with self._database.read() as connection:
            return requests.existing_run(connection, run).status

    def statuses(self, runs: Iterable[str]) -> dict[str, Status]:
        """The status of each of these runs, all at the same moment. Unknown runs are left out."""
        with self._database.read() as connection:
            stored = stored_runs_of(connection, list(runs))
            return {str(run.row["id"]): run.status for run in stored if not run.removed}

    def run(self, run: str) -> ListedRun:
        """One run as a list shows it."""
        queue: list[str] = []
        with self._database.read() as connection:
            stored = requests.existing_run(connection, run)
            if stored.damaged:
                raise Damaged(f"run {run}: its row in the store is damaged", "Delete it, then run it again")
            if stored.status == "queued":
                queue = _queue(connection, unfinished_runs(connection))
        place = queue.index(run) + 1 if run in queue else None
        return stored.listed(place, folder_size(self.home.folder(run)))

    def runs(self) -> list[ListedRun]:
        """Every run, the last submitted first."""
        return list(self._list_runs())

    def _read_runs(self) -> list[ListedRun]:
        with self._database.read() as connection:
            stamped = stamps(connection)
            unknown = [run for stamp, run in stamped.items() if stamp not in self._finished]
            read = {str(run.row["id"]): run for run in stored_runs_of(connection, unknown)}
            stored = {run: read[run] for run in unknown if run in read}  # in the order of submission
            places = {run: place for place, run in enumerate(_queue(connection, list(stored.values())), start=1)}
        listed = []
        for stamp, name in reversed(stamped.items()):
            if stamp in self._finished:
                listed.append(self._finished[stamp])
            elif name in stored and not stored[name].removed:
                run = stored[name].listed(places.get(name), folder_size(self.home.folder(name)))
                if run.status == "finished":  # its row and its payloads change no more, so both are read once
                    self._finished[stamp] = run
                listed.append(run)
        self._finished = {stamp: run for stamp, run in self._finished.items() if stamp in stamped}
        return listed

    def queue(self) -> list[str]:
        """Runs that wait for a slot, the next one first."""
        with self._database.read() as connection:
            return _queue(connection, unfinished_runs(connection))

    def seconds_left(self, runs: Sequence[str], slots: int) -> float | None:
        """The seconds until the last of these runs ends, with everything that runs before it. None if unknown."""
        with self._database.read() as connection:
            queue, live = leases.queue_and_live(connection)
            return pace.left(connection, runs, queue, live, slots)

    def seconds_until(self, expected: Mapping[str, float], visitor: str, slots: int) -> float | None:
        """The seconds until these runs would end if this visitor requested them now. Finished ones take none.

        `expected` are the seconds of each run by itself.
        """
        statuses = self.statuses(expected)
        missing = {run: seconds for run, seconds in expected.items() if statuses.get(run) != "finished"}
        with self._database.read() as connection:
            queue, live = leases.queue_and_live(connection, [WaitingRun(run, (visitor,)) for run in missing])
            return pace.left(connection, list(missing), queue, live, slots, missing)

    def usual_seconds(self, spec: Mapping[str, Any]) -> float | None:
        """The mean seconds that runs like this one took on this machine. None before the first."""
        work = pace.work_key(spec)
        with self._database.read() as connection:
            return pace.usual_seconds(connection, [work]).get(work)

    def bodies(self, run: str, after: int = 0) -> list[tuple[int, dict[str, Any]]]:
        """The events after this number, each with its number, as JSON."""
        with self._database.read() as connection:
            requests.existing_run(connection, run)
            rows = connection.execute(
                "SELECT number, body FROM events WHERE run = ? AND number > ? ORDER BY number", (run, after)
            ).fetchall()
        try:
            joined = ",".join(row["body"] for row in rows)
            bodies = strict_json(f"[{joined}]")
            require_printable(bodies, joined)
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(self.home, f"an event of run {run} cannot be read") from error
        return [(row["number"], body) for row, body in zip(rows, bodies, strict=True)]

    def events(self, run: str, after: int = 0) -> list[tuple[int, Event]]:
        """The events after this number. Numbers only rise. When events are removed, `ListedRun.edition` changes."""
        return [(number, decode(body)) for number, body in self.bodies(run, after)]

    def payload(self, run: str, name: str) -> dict[str, numpy.ndarray[Any, Any]]:
        """The arrays that a Kept event stored under this name."""
        return payloads.read(self.home, run, name)

    def used(self) -> int:
        """Bytes of everything under the home."""
        return self.home.used()

    def complete_deletions(self) -> None:
        """Complete every requested deletion, also those that a process left unfinished.

        The rows go first, then the files, and at last the request. Files of unknown runs stay: they may belong to a
        database that was moved away to be repaired.
        """
        with self._database.read() as connection:
            rows = connection.execute("SELECT run, MAX(number) FROM requests WHERE kind = 'delete' GROUP BY run")
            deletions = [(str(run), int(number)) for run, number in rows]
        for run, number in deletions:
            with self._database.write() as connection:
                deleted = requests.delete_rows(connection, run, number)
            if deleted:
                with self._database.write() as connection:
                    requests.delete_files(connection, self.home, run, number)
        payloads.empty_trash(self.home)
        if deletions:
            self._database.empty_log()

    # --- for supervisors -----------------------------------------------------------------------------------------

    def take(self, owner: ProcessId, slots: int, only: Container[str] | None = None) -> Lease | None:
        """Lease the next waiting run and restore its last checkpoint, all in one transaction."""
        with self._database.read() as connection:
            if leases.next_run(connection, slots, only) is None:  # a supervisor that waits must not block writers
                return None
        with self._database.write() as connection:
            return leases.take(connection, self.home, owner, slots, only)

    def demand(self) -> int:
        """The number of runs that are running or waiting, over all supervisors of this home."""
        with self._database.read() as connection:
            return leases.demand(connection)

    def append(self, lease: Lease, events: Sequence[Event]) -> None:
        """Write events, all of them or none. Raises LeaseLost if another process has taken the run."""
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

    def release_in_memory(self, lease: Lease) -> None:
        """Give the lease up in this process, even if the disk is too full to write that down."""
        RELEASED.add(lease.token)

    def release(self, lease: Lease) -> None:
        self.release_in_memory(lease)
        with self._database.write() as connection:
            leases.release(connection, lease)

    def stop_requested(self, lease: Lease) -> bool:
        with self._database.read() as connection:
            return leases.stop_requested(connection, lease)


def _queue(connection: sqlite3.Connection, runs: Sequence[StoredRun]) -> list[str]:
    waiting = [str(run.row["id"]) for run in runs if not run.has_finished_row and run.status == "queued"]
    live = [str(run.row["id"]) for run in runs if run.lease_alive]
    return leases.start_order(connection, waiting, live)
