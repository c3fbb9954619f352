"""Who has a tab open. Pictures of visitors are deleted half an hour after their last tab."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from engine.errors import LeakLensError
from engine.jobs.store import Store

SEEN_S = 30.0  # how often open tabs are recorded, and left pictures are looked for

log = logging.getLogger(__name__)


class Presence:
    """Counts the open connections of each visitor, records them in the store, and drops the pictures of those who left.

    A store that cannot be opened or written is tried again: the pages show its error meanwhile.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._left: set[str] = set()  # visitors whose last tab was closed since the last record

    def start(self) -> None:
        """Begin to record. The first step drops the pictures of visitors of a server that has ended."""
        with self._lock:
            if self._thread is None:
                self._stopping.clear()
                self._thread = threading.Thread(target=self._loop, name="presence", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    @contextmanager
    def connected(self, visitor: str) -> Iterator[None]:
        """While a tab of this visitor is open."""
        self.start()
        with self._lock:
            self._open[visitor] += 1
        self._wake.set()
        try:
            yield
        finally:
            with self._lock:
                self._open[visitor] -= 1
                if not self._open[visitor]:
                    del self._open[visitor]
                    self._left.add(visitor)
            self._wake.set()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._record()
            except LeakLensError as error:
                log.warning("visits cannot be recorded: %s", error)
            self._wake.wait(SEEN_S)
            self._wake.clear()
            time.sleep(0.05)  # many tabs that open at once are recorded together

    def _record(self) -> None:
        with self._lock:
            here = {*self._open, *self._left}
            self._left.clear()
        store = Store()
        try:
            store.visits.see(here)
            if store.owners.drop_left():
                with suppress(LeakLensError):
                    store.complete_deletions()
        finally:
            store.close()
