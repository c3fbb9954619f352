"""A supervisor in a process of its own, for tests that kill it.

`python3 -m tests.engine.jobs.serve HOME WORKERS [MOMENT AT]` serves until every run has ended. With a moment it kills
itself then: `before-commit` or `after-commit` of the AT-th batch of events, or `both`, which also kills its workers.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.events import Event
from engine.jobs.leases import Lease
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor

FAKE = "tests.engine.jobs.fake:run"


class KillingStore(Store):
    """A store that kills its process at one exact moment."""

    moment = ""
    left = 0  # batches of events until that moment
    supervisor: Any = None

    def append(self, lease: Lease, events: Sequence[Event]) -> None:
        self.left -= 1
        if self.left == 0 and self.moment == "before-commit":
            os.kill(os.getpid(), signal.SIGKILL)
        super().append(lease, events)
        if self.left == 0 and self.moment == "both":
            for worker in self.supervisor._handles:
                os.kill(worker.pid, signal.SIGKILL)
        if self.left == 0 and self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


def main(home: str, workers: str, moment: str = "", at: str = "0") -> None:
    store = KillingStore(Path(home))
    store.moment = moment
    store.left = int(at)
    store.supervisor = Supervisor(store, int(workers), FAKE, preload=())
    with store.supervisor:
        while any(run.status in ("queued", "running") for run in store.runs()):
            time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
