"""A backend of threads: the same jobs without processes, as a cluster would run them elsewhere."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Queue
from typing import Any

from engine.events import Failed
from engine.jobs.backends.base import Inbox
from engine.jobs.backends.worker import Job, perform


class ThreadWorker:
    """Runs jobs in a thread. One that died delivers nothing more."""

    def __init__(self, inbox: Inbox) -> None:
        self.jobs = 0
        self.ready = False
        self.idle_since = time.monotonic()
        self.garbled = False
        self._inbox = inbox
        self._job = ""
        self._dead = threading.Event()
        self._orders: Queue[dict[str, Any]] = Queue()
        self._cancelled: set[str] = set()
        self._deliver(json.dumps({"ready": 1}))
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def busy(self) -> bool:
        return bool(self._job)

    @property
    def stuck(self) -> bool:
        return False

    def begin(self, job: Mapping[str, Any]) -> None:
        self._job = job["token"]
        self.jobs += 1
        self._orders.put(dict(job))

    def cancel(self, token: str) -> None:
        self._cancelled.add(token)

    def run_ended(self) -> None: ...

    def done(self, token: str) -> None:
        if token == self._job:
            self._job = ""
            self.idle_since = time.monotonic()

    def kill(self) -> None:
        """The thread cannot be stopped, but nothing that it does arrives."""
        if not self._dead.is_set():
            self._dead.set()
            self._inbox.put((self, None))

    def close(self) -> None:
        self.kill()

    def exit_reason(self) -> str:
        return "was ended"

    def stderr_tail(self) -> str:
        return ""

    def failure(self, spec: Mapping[str, Any], threads: int) -> Failed | None:
        del spec, threads
        return None

    def _run(self) -> None:
        while not self._dead.is_set():
            job = self._orders.get()
            for line, _ in perform(Job(**job), self._cancelled):
                if self._dead.is_set():
                    return
                self._deliver(line)
            self._deliver(json.dumps({"done": job["token"]}))

    def _deliver(self, line: str) -> None:
        if not self._dead.is_set():
            self._inbox.put((self, line.encode() + b"\n"))


class NoWarmSlots:
    """Threads need no limit on idle workers."""

    def take(self, wanted: int) -> int:
        return wanted

    def leave(self, keep: int = 0) -> None: ...


class ThreadBackend:
    """As many threads at once as asked for."""

    slots = 2

    def start(self, inbox: Inbox, preload: Sequence[str]) -> ThreadWorker:
        del preload
        return ThreadWorker(inbox)

    def warm_slots(self, home: Any, count: int) -> NoWarmSlots:
        del home, count
        return NoWarmSlots()
