"""The worker process: orders in on stdin, events out on stdout, one job after another, gone with its supervisor."""

from __future__ import annotations

import errno
import faulthandler
import gc
import importlib
import json
import math
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

from engine.errors import LeakLensError, RunFailed
from engine.events import Cancelled, Event, Failed, Kept, Round, decode, encode
from engine.jobs import payloads
from engine.jobs.home import Home
from engine.pipes import private_pipes

GATHER_S = 0.1  # what is told within it leaves together
TRACE_CHARS = 20_000


@dataclass(frozen=True)
class Job:
    """One lease's work, as the supervisor writes it."""

    token: str
    run: str
    entry: str  # `module:function`, called with (spec, resume, home=, threads=, device=, stop=)
    spec: dict[str, Any]
    resume: dict[str, Any] | None  # a Kept event, its payload is in the home
    home: str
    threads: int
    device: str


class OutgoingEvent(NamedTuple):
    """One event on its way out."""

    text: str
    now: bool  # a checkpoint not yet told is work that a crash would lose; after an end the next run may begin


class EventWriter:
    """The way out: the first line leaves at once, the next ones are gathered for a moment."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        self._waiting = threading.Event()
        self._left = -math.inf
        threading.Thread(target=self._gather, daemon=True).start()

    def tell(self, line: str, *, now: bool = False) -> None:
        with self._lock:
            self._lines.append(line.encode() + b"\n")
            if now or time.monotonic() - self._left >= GATHER_S:
                self._leave()
            else:
                self._waiting.set()

    def _gather(self) -> None:
        while True:
            self._waiting.wait()
            time.sleep(GATHER_S)
            with self._lock:
                self._leave()

    def _leave(self) -> None:
        self._waiting.clear()
        self._left = time.monotonic()
        lines, self._lines = self._lines, []
        if lines:
            self._stream.write(b"".join(lines))
            self._stream.flush()


def main(preload: Sequence[str]) -> None:
    """Serve jobs until the supervisor closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which cancels in good order
    faulthandler.enable()
    orders, out = private_pipes()
    wire = EventWriter(out)
    jobs: SimpleQueue[Job] = SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_listen, args=(orders, jobs, cancelled), daemon=True).start()
    for module in preload:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the collector would look through all of that again and again
    wire.tell(json.dumps({"ready": os.getpid()}), now=True)
    while True:
        job = jobs.get()
        for line, now in perform(job, cancelled):
            wire.tell(line, now=now)
        wire.tell(json.dumps({"done": job.token}), now=True)


def perform(job: Job, cancelled: Container[str]) -> Iterator[OutgoingEvent]:
    """What a run tells, as JSON, with payloads put aside; always ended by exactly one ending."""
    home, names, round = Home(Path(job.home)), dict[str, int](), 0
    tempfile.tempdir = job.home  # what a run puts aside for itself shares the home's disk, not a small /tmp
    try:
        resume = _checkpoint(home, job)
        round = resume.round if resume else 0
        module, _, function = job.entry.partition(":")
        run = getattr(importlib.import_module(module), function)
        how = {"home": home, "threads": job.threads, "device": job.device, "stop": lambda: job.token in cancelled}
        for event in run(job.spec, resume, **how):
            round = event.round if isinstance(event, Round) else round
            yield _line(_put_aside(home, job.run, event, names))
            if event.ends:
                return
        if job.token in cancelled:
            yield _line(Cancelled(round))
            return
        raise RunFailed("the run ended without a result", "This is a fault of the part that computed it")
    except GeneratorExit:
        raise
    except BaseException as error:
        yield _line(Cancelled(round) if job.token in cancelled else failure(error))


def failure(error: BaseException) -> Failed:
    """Any error as one sentence and a remedy; where it happened is kept apart."""
    trace = "".join(traceback.format_exception(error))[-TRACE_CHARS:]
    if isinstance(error, LeakLensError):
        return Failed(error.message, error.remedy, trace)
    if isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error):
        return Failed(
            "the run needs more memory than this machine has left",
            "Choose a smaller model, a smaller batch or fewer clients per round",
            trace,
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Failed("no space is left on the disk", "Delete runs that are no longer needed, then ask again", trace)
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return Failed(f"the run met an error of its own ({reason})", "The trace kept with the run says where", trace)


def _listen(orders: BinaryIO, jobs: SimpleQueue[Job], cancelled: set[str]) -> None:
    """Runs beside the job, so that a cancel is heard and a lost supervisor ends the process whatever it computes."""
    try:
        for line in orders:
            order = json.loads(line)
            if "cancel" in order:
                cancelled.add(order["cancel"])
            else:
                jobs.put(Job(**order))
    finally:
        os._exit(0)


def _line(event: Event) -> OutgoingEvent:
    return OutgoingEvent(json.dumps(encode(event), allow_nan=False), now=isinstance(event, Kept) or event.ends)


def _checkpoint(home: Home, job: Job) -> Kept | None:
    if job.resume is None:
        return None
    kept = decode(job.resume)
    assert isinstance(kept, Kept)
    return replace(kept, payload=payloads.read(home, job.run, kept.name))


def _put_aside(home: Home, run: str, event: Event, names: dict[str, int]) -> Event:
    """Write the payload, then let the event go: whoever hears the name finds the file."""
    if not isinstance(event, Kept) or event.payload is None:
        return event
    if names.setdefault(event.name, event.round) != event.round:
        raise RunFailed(f"payload {event.name}: kept in two rounds under one name", "Put the round in the name")
    payloads.write(home, run, event.name, event.payload)
    return replace(event, payload=None)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # the listening thread holds stdin, and a common exit would wait for it
