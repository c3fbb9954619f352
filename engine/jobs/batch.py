"""Following a batch: many runs requested as one, submitted, watched and reported as they end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import LeakLensError, RunFailed
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.requests import MACHINE
from engine.jobs.status import MOVING

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor

POLL_S = 0.05
POLL_SHARE = 20  # the pause is at least this many times the duration of a poll
ENDED = ("finished", "failed", "cancelled")

__all__ = ["Batch", "BatchMember", "BatchProgress", "follow", "progress"]


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is."""

    statuses: Mapping[str, str]  # of the members that the store has
    total: int  # members that can be requested
    done: int  # finished or failed
    seconds_left: float | None  # None while it cannot be known


def progress(store: Store, runs: tuple[str, ...], slots: int) -> BatchProgress:
    """The progress of these runs. The time left counts everything that runs before them."""
    statuses = store.statuses(runs)
    done = sum(statuses.get(run) in ("finished", "failed") for run in runs)
    moving = [run for run in runs if statuses.get(run) in MOVING]
    left = store.seconds_left(moving, slots) if moving else 0.0
    return BatchProgress(statuses, len(runs), done, left)


def follow(
    store: Store,
    supervisor: Supervisor,
    batch: Batch,
    options: Mapping[str, Any] | None = None,
    visitor: str = MACHINE,
) -> Iterator[tuple[str, str]]:
    """Request the batch, and yield each run with its status as it ends.

    Finished members are reused. An interrupted one is submitted again. One that someone deletes counts as cancelled.
    """
    finished = set(batch.runs) == {run for run, status in store.statuses(batch.runs).items() if status == "finished"}
    if not finished:
        store.batches.request(batch, visitor, options)
        supervisor.wake()
    specs = {member.run: member.spec for member in batch.members}
    waiting = list(batch.runs)
    while waiting:
        began = time.monotonic()
        statuses = store.statuses(waiting)
        interrupted = [run for run in waiting if statuses.get(run) == "interrupted"]
        if interrupted:
            store.batches.submit({run: specs[run] for run in interrupted}, options)
            supervisor.wake()
        left = []
        for run in waiting:
            status = statuses.get(run, "cancelled")
            if status in ENDED:
                yield run, status
            else:
                left.append(run)
        if left and not supervisor.working and supervisor.trouble:
            _raise(supervisor.trouble)
        waiting = left
        if waiting:
            time.sleep(max(POLL_S, POLL_SHARE * (time.monotonic() - began)))


def _raise(trouble: Exception) -> None:
    """Raise the error that keeps the supervisor from running anything."""
    if isinstance(trouble, LeakLensError):
        raise trouble
    raise RunFailed(f"{type(trouble).__name__}: {trouble}", "Run it again: finished runs are reused")
