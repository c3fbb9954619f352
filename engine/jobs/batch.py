"""Many runs requested as one: submit them and report each one as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import LeakLensError, RunFailed

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor

LOOK_S = 0.05
LOOK_SHARE = 20  # and this many times what a look takes
ENDED = ("finished", "failed", "cancelled")


def follow(
    store: Store,
    supervisor: Supervisor,
    specs: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, object] | None = None,
) -> Iterator[tuple[str, str]]:
    """Submit what is not finished, and yield each run with its status as it ends.

    A run whose process is gone is submitted again. A run that someone deletes counts as cancelled.
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
            time.sleep(max(LOOK_S, LOOK_SHARE * (time.monotonic() - began)))


def _raise(trouble: Exception) -> None:
    """Nothing can move any more: say why."""
    if isinstance(trouble, LeakLensError):
        raise trouble
    raise RunFailed(f"{type(trouble).__name__}: {trouble}", "Run it again: finished runs are reused")
