"""The times from the request of instant attacks on a photo to the first and the last finished one, with warm workers.

As on the first page: one photo in a fresh home, one attack on each stop of the stored sweep, requested as one batch.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from engine.bench import BenchRow
from engine.bench.first_accuracy import PATIENCE_S, PRELOAD, wait_until_warm
from engine.errors import Damaged
from engine.examples import start
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.leakage import portrait
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

LOADED = (*PRELOAD, "engine.jobs.backends.preload_attacks")  # as in a dashboard
REPEATS = 5
FIRST_S, LAST_S = 1.0, 2.0


def measure() -> BenchRow:
    times = [seconds() for _ in range(REPEATS)]
    first, last = zip(*times, strict=True)
    ours = {
        "first s": statistics.median(first),
        "last s": statistics.median(last),
        "first worst s": max(first),
        "last worst s": max(last),
    }
    kept = ours["first s"] < FIRST_S and ours["last s"] < LAST_S
    return BenchRow("photo", ours, promise="first picture under 1 s, all stops under 2 s", kept=kept)


def seconds() -> tuple[float, float]:
    """Seconds to the first and to the last finished attack in a fresh home."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with Supervisor(store, preload=LOADED) as supervisor:
            wait_until_warm(supervisor)
            taken = _seconds(store, supervisor)
        store.close()
    return taken


def _seconds(store: Store, supervisor: Supervisor) -> tuple[float, float]:
    batch = attacks_on(f"own-{store.owners.add(portrait.read())}-0")
    begin = time.perf_counter()
    store.batches.request(batch, "visitor")
    supervisor.wake()
    first = 0.0
    taken = 0.0
    while taken < PATIENCE_S:
        time.sleep(0.005)
        ended = list(store.statuses(batch.runs).values()).count("finished")
        taken = time.perf_counter() - begin
        first = first or (taken if ended else 0.0)
        if ended == len(batch.runs):
            break
    return first, taken


def attacks_on(picture: str) -> Batch:
    """The instant attack on a picture at each stop of the stored sweep."""
    example = start.start_example()
    if example is None:
        raise start.load_error() or Damaged("gallery: start: cannot be read", start.AGAIN)
    members = []
    for stop in example.stops:
        spec = AttackSpec(run=RunSpec(**stop.run.spec), attack="analytic", pictures=[picture], round="last")
        members.append(BatchMember(spec.id, spec.canonical()))
    return Batch("leak grid", "A photo at every stop", tuple(members))
