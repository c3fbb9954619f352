"""A worker process as its supervisor sees it: started, given orders, listened to, and spoken of when it has died."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Queue
from typing import IO, Any

from engine.pipes import serving

DEATH_S = 5.0
CLOSE_S = 5.0  # so long a worker may take to put away what a run held that has told its end
TAIL_BYTES = 4000

Inbox = Queue[tuple["WorkerHandle | None", bytes | None]]


class WarmWorkerSlots:
    """The right to keep warm workers without work: so many in all, over every supervisor of one home."""

    def __init__(self, home: Path, count: int) -> None:
        self._files = [home / f".spare-{number}" for number in range(count)]
        self._held: list[IO[bytes]] = []

    def take(self, wanted: int) -> int:
        """How many are ours now; they fall with this process at the latest."""
        for path in self._files if len(self._held) < wanted else []:
            try:
                file = path.open("ab")
            except OSError:  # a home that is full or cannot be written needs no worker
                break
            if not _locked(file):
                file.close()
                continue
            self._held.append(file)
            if len(self._held) == wanted:
                break
        return min(len(self._held), wanted)

    def leave(self, keep: int = 0) -> None:
        """Let others have the rest."""
        while len(self._held) > keep:
            self._held.pop().close()


class WorkerHandle:
    """One process, and a thread that puts its lines into the inbox; the last thing it puts is None."""

    def __init__(self, inbox: Inbox, preload: Sequence[str]) -> None:
        self.jobs = 0
        self.ready = False
        self.idle_since = time.monotonic()
        self.garbled = False  # said something that is no event
        self._job = ""
        self._closing: tuple[str, float] | None = None  # a job that has told its end, and when
        self._noise = tempfile.TemporaryFile("a+b")  # noqa: SIM115  (closed with the process)
        self._process = serving("engine.jobs.worker", *preload, stderr=self._noise)
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def busy(self) -> bool:
        return bool(self._job)

    def begin(self, job: Mapping[str, Any]) -> None:
        self._job = job["token"]
        self.jobs += 1
        self._order(job)

    def cancel(self, token: str) -> None:
        self._order({"cancel": token})

    def told_its_end(self) -> None:
        """Its run is over; it is about to be free."""
        self._closing = self._job, time.monotonic()

    @property
    def stuck(self) -> bool:
        """Whether it cannot let go of a run that is over."""
        return self._closing is not None and time.monotonic() - self._closing[1] > CLOSE_S

    def done(self, token: str) -> None:
        if self._closing and token == self._closing[0]:
            self._closing = None
        if token == self._job:
            self._job, self.idle_since = "", time.monotonic()

    def kill(self) -> None:
        """End it now; its cores are free when this returns."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(DEATH_S)

    def bury(self) -> None:
        """Let go of the pipes and files of a dead process."""
        self.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._noise.close()

    def obituary(self) -> str:
        """How it ended, as the end of a sentence."""
        if self.garbled:
            return "wrote what is not an event"
        code = self._process.poll()
        if code is None or code >= 0:
            return f"ended by itself with exit code {code or 0}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"was ended by {name}" + ("; it may have run out of memory" if name == "SIGKILL" else "")

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        end = self._noise.seek(0, os.SEEK_END)
        self._noise.seek(max(0, end - TAIL_BYTES))
        return self._noise.read().decode(errors="replace")

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    def _order(self, order: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed by the end of its lines
            self._stdin.write(json.dumps(order).encode() + b"\n")
            self._stdin.flush()

    def _listen(self, inbox: Inbox) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                inbox.put((self, line))
        inbox.put((self, None))


def _locked(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk without locks
        return True
    return True
