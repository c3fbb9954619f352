"""A batch: many runs requested as one. It submits them and reports each one as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import LeakLensError, RunFailed

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor

POLL_S = 0.05
POLL_SHARE = 20  # the pause is at least this many times the duration of a poll
ENDED = ("finished", "failed", "cancelled")


def follow(
    store: Store,
    supervisor: Supervisor,
    specs: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, object] | None = None,
) -> Iterator[tuple[str, str]]:
    """Submit the runs that are not finished, and yield each run with its status as it ends.

    An interrupted run is submitted again. A run that someone deletes counts as cancelled.
    """

    def submit(runs: Sequence[str]) -> None:
        if runs:
            store.submit_all({run: specs[run] for run in runs}, options)
            supervisor.wake()

    statuses = store.statuses(specs)
    submit([run for run in specs if statuses.get(run) != "finished"])
    waiting = list(specs)
    while waiting:
        began = time.monotonic()
        statuses = store.statuses(waiting)
        submit([run for run in waiting if statuses.get(run) == "interrupted"])
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
