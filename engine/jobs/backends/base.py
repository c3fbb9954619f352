"""What a supervisor needs of the place where jobs run: local processes today, a cluster tomorrow.

A job is one message (`job_message`). A worker answers with lines of JSON, which it puts into the inbox of its
supervisor: `ready` once, the events of the job as they happen, and `done` when it can take the next job. Its last entry
in the inbox is None. Payloads are files of the home, written before the event that names them. The supervisor alone
writes to the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

from engine.events import Failed, encode
from engine.jobs.home import Home
from engine.jobs.leases import Lease

ENTRIES = {False: "engine.training.loop:run_json", True: "engine.jobs.entries:attack_json"}  # True for an attack


def job_message(lease: Lease, threads: int, home: Home, entry: str | None = None) -> dict[str, Any]:
    """The job of one lease, as JSON. `entry` is the `module:function` that yields its events."""
    return {
        "token": lease.token,
        "run": lease.run,
        "entry": entry or ENTRIES["attack" in lease.spec],
        "spec": lease.spec,
        "resume": encode(lease.resume) if lease.resume else None,  # a checkpoint, whose payload is in the home
        "home": str(home.path),
        "threads": threads,
        "device": lease.options.get("device") or "cpu",
    }


class BackendWorker(Protocol):
    """One place that runs jobs one after another."""

    jobs: int  # jobs it was given so far
    ready: bool  # it has written its first line
    idle_since: float  # on the monotonic clock
    garbled: bool  # it wrote a line that is no message

    @property
    def busy(self) -> bool: ...

    @property
    def stuck(self) -> bool:
        """True if it takes too long to finish a job whose run has ended."""
        ...

    def begin(self, job: Mapping[str, Any]) -> None:
        """Run a job. Its events come to the inbox."""
        ...

    def cancel(self, token: str) -> None:
        """Ask the worker to write a checkpoint and stop. The supervisor kills one that does not."""
        ...

    def run_ended(self) -> None:
        """The run of the current job has ended. The worker frees its memory and is then done."""
        ...

    def done(self, token: str) -> None:
        """The worker reported that this job is done."""
        ...

    def kill(self) -> None:
        """End the worker now. Its cores are free when this returns."""
        ...

    def close(self) -> None:
        """End the worker, and close what it holds."""
        ...

    def exit_reason(self) -> str:
        """How the worker ended, as the end of a sentence."""
        ...

    def stderr_tail(self) -> str:
        """The end of what it wrote beside its lines."""
        ...

    def failure(self, spec: Mapping[str, Any], threads: int) -> Failed | None:
        """Why a new worker would end the same way, such as a lack of memory. None: the job may be tried again."""
        ...


Inbox = Queue[tuple["BackendWorker | None", bytes | None]]


class WarmSlots(Protocol):
    """The right to keep idle warm workers, which all supervisors of one home share."""

    def take(self, wanted: int) -> int:
        """Take as many as wanted, and return how many this supervisor has."""
        ...

    def leave(self, keep: int = 0) -> None:
        """Give up all but `keep` of them."""
        ...


class Backend(Protocol):
    """A place where jobs run."""

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
        ...

    def start(self, inbox: Inbox, preload: Sequence[str]) -> BackendWorker:
        """Start a worker that imports these modules before its first job."""
        ...

    def warm_slots(self, home: Path, count: int) -> WarmSlots:
        """The right to keep this many idle workers, over all supervisors of the home in this folder."""
        ...
