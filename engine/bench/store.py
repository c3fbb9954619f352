"""Events a second appended by one supervisor, and a long run read back. The peer is JSON lines with fsync."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from engine.bench import BenchRow
from engine.events import Event, Measured, Round, Spent, encode
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store

ROUNDS, BATCH = 300, 100


def measure() -> BenchRow:
    events = said()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.submit("bench", {"rounds": ROUNDS})
        lease = store.take(ProcessId.me(), 1)
        assert lease is not None
        start = time.perf_counter()
        for at in range(0, len(events), BATCH):
            store.append(lease, events[at : at + BATCH])
        rate = len(events) / (time.perf_counter() - start)
        read = min(timed(lambda: store.events("bench")) for _ in range(5))
        path = Path(folder) / "peer.jsonl"
        start = time.perf_counter()
        for at in range(0, len(events), BATCH):
            lines(path, events[at : at + BATCH])
        peer = len(events) / (time.perf_counter() - start)
    ours = {"events/s": rate, "read back ms": 1000 * read, "events": len(events)}
    kept = rate >= 10_000 and read <= 0.05
    return BenchRow(
        "store", ours, {"events/s": peer}, rate / peer, "at least 10,000 events/s, 300 rounds read in 50 ms", kept
    )


def said() -> list[Event]:
    """What a run of 300 rounds with a promise in four views says."""
    events: list[Event] = []
    for round in range(1, ROUNDS + 1):
        events += [Round(round, ROUNDS, 10), Measured(round, "accuracy", 0.5), Measured(round, "loss", 1.2)]
        for view in ("server", "aggregate", "outsider", "client"):
            events.append(Spent(round, view, 1.0 + round / 100, "user", "zero-out", 1e-5, "rdp", "poisson", worst=3))
    return events


def timed(work: object) -> float:
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def lines(path: Path, events: list[Event]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(encode(event)) + "\n" for event in events)
        file.flush()
        os.fsync(file.fileno())
