"""The local backend: one process for each worker. It starts, reads and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from engine import memory
from engine.errors import Damaged
from engine.events import Event, Failed, decode
from engine.jobs.backends import memory_failure
from engine.jobs.backends.base import Inbox
from engine.jobs.home import locked
from engine.jobs.process_id import cores
from engine.pipes import start_child

KILL_S = 5.0
CLOSE_S = 5.0  # a worker may take this long to free the memory and files of a run that has ended
TAIL_BYTES = 4000


class WarmWorkerSlots:
    """The right to keep idle warm workers. Their number is limited over all supervisors of one home."""

    def __init__(self, home: Path, count: int) -> None:
        self._files = [home / f".spare-{number}" for number in range(count)]
        self._locks: list[IO[bytes]] = []

    def take(self, wanted: int) -> int:
        """Lock as many slots as wanted, and return how many are locked. They are freed when this process ends."""
        for path in self._files:
            if len(self._locks) >= wanted:
                break
            try:
                file = path.open("ab")
            except OSError:  # a home that is full or read-only needs no warm worker
                break
            if locked(file):
                self._locks.append(file)
            else:
                file.close()
        return min(len(self._locks), wanted)

    def leave(self, keep: int = 0) -> None:
        """Free all slots but `keep` of them for other supervisors."""
        while len(self._locks) > keep:
            self._locks.pop().close()


class LocalBackend:
    """Processes on this machine, as many at once as it has cores."""

    @property
    def slots(self) -> int:
        return cores()

    def start(self, inbox: Inbox, preload: Sequence[str]) -> WorkerHandle:
        return WorkerHandle(inbox, preload)

    def warm_slots(self, home: Path, count: int) -> WarmWorkerSlots:
        return WarmWorkerSlots(home, count)


class WorkerHandle:
    """One process, and a thread that puts its lines into the inbox. The last line is None."""

    def __init__(self, inbox: Inbox, preload: Sequence[str]) -> None:
        self.jobs = 0
        self.ready = False
        self.idle_since = time.monotonic()
        self.garbled = False  # it wrote a line that is no message
        self._job = ""
        self._closing: tuple[str, float] | None = None  # the job whose run has ended, and when it ended
        self._stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115  (closed with the process)
        self._oom_kills = memory.oom_kills()  # of the container, before this process may be one of them
        self._process = start_child("engine.jobs.backends.worker", *preload, stderr=self._stderr)
        threading.Thread(target=self._read_lines, args=(inbox,), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def busy(self) -> bool:
        return bool(self._job)

    def begin(self, job: Mapping[str, Any]) -> None:
        self._job = job["token"]
        self.jobs += 1
        self._send(job)

    def cancel(self, token: str) -> None:
        self._send({"cancel": token})

    def run_ended(self) -> None:
        """The run of the current job has ended. The worker frees its memory and is then done."""
        self._closing = self._job, time.monotonic()

    @property
    def stuck(self) -> bool:
        """True if the worker takes too long to finish a job whose run has ended."""
        return self._closing is not None and time.monotonic() - self._closing[1] > CLOSE_S

    def done(self, token: str) -> None:
        if self._closing and token == self._closing[0]:
            self._closing = None
        if token == self._job:
            self._job = ""
            self.idle_since = time.monotonic()

    def kill(self) -> None:
        """End the process now. Its cores are free when this returns."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_S)

    def close(self) -> None:
        """End the process, and close its pipes and files."""
        self.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stderr.close()

    def exit_reason(self) -> str:
        """How the process ended, as the end of a sentence."""
        if self.garbled:
            return "wrote a line that is not an event"
        name = self.ending_signal()
        if not name:
            return f"ended by itself with exit code {self._process.poll() or 0}"
        hint = "; it may have run out of memory" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"

    def ending_signal(self) -> str:
        """The name of the signal that ended the process; empty if it ended by itself."""
        code = self._process.poll()
        if self.garbled or code is None or code >= 0:
            return ""
        known = -code in set(signal.Signals)
        return signal.Signals(-code).name if known else f"signal {-code}"

    def failure(self, spec: Mapping[str, Any], threads: int) -> Failed | None:
        """The failure of a job that needs more memory than there is. None: another process may complete it."""
        return memory_failure.of_exit(spec, threads, self.ending_signal(), self.stderr_tail(), self._oom_kills)

    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        end = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, end - TAIL_BYTES))
        return self._stderr.read().decode(errors="replace")

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    def _send(self, order: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the end of its lines reports a dead worker
            self._stdin.write(json.dumps(order).encode() + b"\n")
            self._stdin.flush()

    def _read_lines(self, inbox: Inbox) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                inbox.put((self, line))
        inbox.put((self, None))


def parsed_line(line: bytes) -> Event | dict[str, Any] | None:
    """A line of a worker: an event, or a message that it is ready or done. None for anything else."""
    try:
        message = json.loads(line)
        if isinstance(message, dict) and "event" in message:
            return decode(message)
    except (ValueError, Damaged):
        return None
    return message if isinstance(message, dict) and ("ready" in message or "done" in message) else None
