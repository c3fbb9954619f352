"""The time from submit to the first accuracy in the store, with a warm worker and with a cold one. No peer."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from engine.bench import BenchRow
from engine.events import Event, Measured
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.specs.run import RunSpec

PRELOAD = ("engine.jobs.backends.preload",)
PATIENCE_S = 60.0
PROMISE = "warm at most 0.4 s, cold at most 5 s"


def measure() -> BenchRow:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        start = time.perf_counter()
        with Supervisor(store, preload=PRELOAD) as supervisor:
            cold = seconds_to_accuracy(store, supervisor, 1000, start)
            warm = []
            for seed in range(7):
                wait_until_warm(supervisor)
                warm.append(seconds_to_accuracy(store, supervisor, seed, time.perf_counter()))
    ours = {"warm s": statistics.median(warm), "warm worst s": max(warm), "cold s": cold}
    kept = ours["warm s"] <= 0.4 and cold <= 5
    return BenchRow("first-accuracy", ours, promise=PROMISE, kept=kept)


def seconds_to_accuracy(store: Store, supervisor: Supervisor, seed: int, start: float) -> float:
    """Seconds from `start` until a page that reads the store could show a point. Waits for the end of the run."""
    spec = RunSpec(method="udp-fedavg", seed=seed, rounds=5)
    store.submit(spec.id, spec.canonical())
    supervisor.wake()
    taken = seconds_to_event(store, spec.id, Measured, start)
    while store.status(spec.id) in ("queued", "running") and time.perf_counter() - start < PATIENCE_S:
        time.sleep(0.01)
    return taken


def seconds_to_event(store: Store, run: str, kind: type[Event], start: float) -> float:
    """Seconds from `start` until the store holds an event of this kind; 0 after a timeout."""
    while time.perf_counter() - start < PATIENCE_S:
        if any(isinstance(event, kind) for _, event in store.events(run)):
            return time.perf_counter() - start
        time.sleep(0.002)
    return 0.0


def wait_until_warm(supervisor: Supervisor) -> None:
    """Wait until a worker is warm, so that the benchmark measures a click and not the start of a worker."""
    deadline = time.perf_counter() + PATIENCE_S
    while not supervisor.warm and time.perf_counter() < deadline:
        time.sleep(0.05)
