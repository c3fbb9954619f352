"""The worker process. It reads orders from stdin, runs one job after another and writes events to stdout.

It ends when its supervisor ends, because its stdin then closes.
"""

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
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

from engine.errors import LeakLensError, RunFailed
from engine.events import Cancelled, Event, Failed, Kept, Round, decode, encode
from engine.jobs import payloads
from engine.jobs.backends import memory_failure
from engine.jobs.home import Home
from engine.memory import lacks_memory
from engine.open_files import limit_error
from engine.pipes import take_pipes

GATHER_S = 0.1  # lines within this time are written together
NICE = 10  # a click must not wait for runs, which use every core
TRACE_CHARS = 20_000


@dataclass(frozen=True)
class Job:
    """The work of one lease, as the supervisor sends it."""

    token: str
    run: str
    entry: str  # `module:function`, called with (spec, resume, home=, threads=, device=, stop=)
    spec: dict[str, Any]
    resume: dict[str, Any] | None  # a Kept event; its payload is in the home
    home: str
    threads: int
    device: str


class OutgoingEvent(NamedTuple):
    """One event as a line of JSON."""

    text: str
    now: bool  # write it at once: a crash would lose the work of a checkpoint, and an end lets the next run begin


class EventWriter:
    """Writes lines to the supervisor. The first line goes out at once, the next ones are collected for a moment."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        self._waiting = threading.Event()
        self._last_flush = -math.inf
        threading.Thread(target=self._flush_later, daemon=True).start()

    def write(self, line: str, *, now: bool = False) -> None:
        with self._lock:
            self._lines.append(line.encode() + b"\n")
            if now or time.monotonic() - self._last_flush >= GATHER_S:
                self._flush()
            else:
                self._waiting.set()

    def _flush_later(self) -> None:
        while True:
            self._waiting.wait()
            time.sleep(GATHER_S)
            with self._lock:
                self._flush()

    def _flush(self) -> None:
        self._waiting.clear()
        self._last_flush = time.monotonic()
        lines = self._lines
        self._lines = []
        if lines:
            self._stream.write(b"".join(lines))
            self._stream.flush()


def main(preload: Sequence[str]) -> None:
    """Run jobs until the supervisor closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which cancels the job properly
    faulthandler.enable()
    _give_way()
    orders, out = take_pipes()
    writer = EventWriter(out)
    jobs: SimpleQueue[Job] = SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_read_orders, args=(orders, jobs, cancelled), daemon=True).start()
    for module in preload:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the collector would search all imported modules again and again
    writer.write(json.dumps({"ready": os.getpid()}), now=True)
    while True:
        job = jobs.get()
        for line, now in perform(job, cancelled):
            writer.write(line, now=now)
        writer.write(json.dumps({"done": job.token}), now=True)


def perform(job: Job, cancelled: Container[str]) -> Iterator[OutgoingEvent]:
    """The events of a run as JSON. Payloads go to files. The last event is always exactly one that ends the run."""
    home = Home(Path(job.home))
    rounds: dict[str, int] = {}  # of each payload name
    round = 0
    tempfile.tempdir = job.home  # temporary files of a run belong on the disk of the home, not on a small /tmp
    try:
        resume = _checkpoint(home, job)
        round = resume.round if resume else 0
        module, _, function = job.entry.partition(":")
        run = getattr(importlib.import_module(module), function)
        how = {"home": home, "threads": job.threads, "device": job.device, "stop": lambda: job.token in cancelled}
        for event in run(job.spec, resume, **how):
            round = event.round if isinstance(event, Round) else round
            yield _line(_store_payload(home, job.run, event, rounds))
            if event.ends:
                return
        if job.token in cancelled:
            yield _line(Cancelled(round))
            return
        raise RunFailed("the run ended without a result", "The part that computed it has a bug: report it")
    except GeneratorExit:
        raise
    except BaseException as error:
        yield _line(Cancelled(round) if job.token in cancelled else failure(error, job.spec, job.threads))


def failure(error: BaseException, spec: Mapping[str, Any] | None = None, threads: int = 1) -> Failed:
    """Any error as one sentence and a fix. The traceback is a separate field. `spec` is that of the run."""
    trace = "".join(traceback.format_exception(error))[-TRACE_CHARS:]
    error = limit_error(error) or error
    if lacks_memory(error):
        traceback.clear_frames(error.__traceback__)  # frees the arrays of the run: the forecast needs memory, too
        return memory_failure.of_error(spec or {}, threads, trace)
    if isinstance(error, LeakLensError):
        return Failed(error.message, error.remedy, trace)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Failed("no space is left on the disk", "Delete runs that are no longer needed, then run it again", trace)
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return Failed(f"the run stopped at an unexpected error ({reason})", "See the traceback stored with the run", trace)


def _read_orders(orders: BinaryIO, jobs: SimpleQueue[Job], cancelled: set[str]) -> None:
    """Runs in its own thread, so that a cancel or a lost supervisor takes effect while a job computes."""
    try:
        for line in orders:
            order = json.loads(line)
            if "cancel" in order:
                cancelled.add(order["cancel"])
            else:
                jobs.put(Job(**order))
    finally:
        os._exit(0)


def _give_way() -> None:
    """Let the pages of the dashboard have the processor first. Where nothing else runs, this changes nothing."""
    with suppress(AttributeError, OSError):  # there is no such call on Windows
        os.nice(NICE)


def _line(event: Event) -> OutgoingEvent:
    text = json.dumps(encode(event), allow_nan=False)
    return OutgoingEvent(text, now=isinstance(event, Kept) or event.ends)


def _checkpoint(home: Home, job: Job) -> Kept | None:
    if job.resume is None:
        return None
    kept = decode(job.resume)
    assert isinstance(kept, Kept)
    return replace(kept, payload=payloads.read(home, job.run, kept.name))


def _store_payload(home: Home, run: str, event: Event, rounds: dict[str, int]) -> Event:
    """Write the payload before the event goes out: a reader that receives the name then finds the file."""
    if not isinstance(event, Kept) or event.payload is None:
        return event
    if rounds.setdefault(event.name, event.round) != event.round:
        raise RunFailed(f"payload {event.name}: two rounds use this name", "Put the round in the name")
    payloads.write(home, run, event.name, event.payload)
    return replace(event, payload=None)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # a normal exit would wait for the thread that reads stdin
