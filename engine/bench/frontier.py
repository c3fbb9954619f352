"""A sweep of thirty runs as a visitor requests it: through the store and its warm workers."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from engine.bench import BenchRow
from engine.jobs.batch import Batch, BatchMember, follow
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, points

WARM_S = 60.0


def measure() -> BenchRow:
    grid = SweepGrid(({"name": "udp-fedavg"}, {"name": "fedceo"}), (0.25, 0.5, 1.0, 1.5, 2.0), (0, 1, 2))
    sweep = points(RunSpec(sampling="poisson"), grid)  # the setting of rounds-mlp: 30 rounds
    members = [BatchMember(point.id, point.spec.canonical()) for point in sweep]
    batch = Batch("sweep", "bench", tuple(members))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with Supervisor(store, preload=("engine.jobs.backends.preload",)) as supervisor:
            supervisor.expect(len(sweep))
            deadline = time.monotonic() + WARM_S
            while not supervisor.warm and time.monotonic() < deadline:
                time.sleep(0.05)
            began = time.monotonic()
            seconds: list[float] = []
            finished = 0
            for _, status in follow(store, supervisor, batch):
                seconds.append(time.monotonic() - began)
                finished += status == "finished"
            began = time.monotonic()
            reused = sum(status == "finished" for _, status in follow(store, supervisor, batch))
            reuse_s = time.monotonic() - began
        store.close()
    kept = seconds[-1] <= 10 and seconds[0] <= 1 and finished == reused == len(sweep)
    return BenchRow(
        "frontier",
        {"points": finished, "s": seconds[-1], "first point s": seconds[0], "asked again s": reuse_s},
        promise="warm, 30 runs of 30 rounds on 2 cores within 10 s, the first point within 1",
        kept=kept,
    )
