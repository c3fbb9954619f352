"""Events per second that one supervisor appends, and the time to read a long run. The peer is JSON lines with fsync."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from engine.bench import BenchRow
from engine.bench.clock import seconds
from engine.events import Event, Measured, Round, Spent, encode
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store

ROUNDS = 300
BATCH = 100
PROMISE = "at least 10,000 events/s, 300 rounds read in 50 ms"


def measure() -> BenchRow:
    events = run_events()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.submit("bench", {"rounds": ROUNDS})
        lease = store.take(ProcessId.me(), 1)
        assert lease is not None
        start = time.perf_counter()
        for first in range(0, len(events), BATCH):
            store.append(lease, events[first : first + BATCH])
        rate = len(events) / (time.perf_counter() - start)
        read = min(seconds(lambda: store.events("bench")) for _ in range(5))
        path = Path(folder) / "peer.jsonl"
        start = time.perf_counter()
        for first in range(0, len(events), BATCH):
            append_lines(path, events[first : first + BATCH])
        peer_rate = len(events) / (time.perf_counter() - start)
    ours = {"events/s": rate, "read back ms": 1000 * read, "events": len(events)}
    kept = rate >= 10_000 and read <= 0.05
    return BenchRow("store", ours, {"events/s": peer_rate}, rate / peer_rate, PROMISE, kept)


def run_events() -> list[Event]:
    """The events of a run of 300 rounds with a guarantee in four views."""
    events: list[Event] = []
    for round in range(1, ROUNDS + 1):
        events += [Round(round, ROUNDS, 10), Measured(round, "accuracy", 0.5), Measured(round, "loss", 1.2)]
        for view in ("server", "aggregate", "outsider", "client"):
            events.append(Spent(round, view, 1.0 + round / 100, "user", "zero-out", 1e-5, "rdp", "poisson", worst=3))
    return events


def append_lines(path: Path, events: list[Event]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(encode(event)) + "\n" for event in events)
        file.flush()
        os.fsync(file.fileno())
