"""A batch survives kill -9 of its server and of its workers: it resumes, and nothing is computed twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.environment import ROOT
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.store import Store
from tests.engine.jobs.conftest import wait_until
from tests.engine.jobs.test_supervisor import matches_undisturbed_run, start_lines

pytestmark = pytest.mark.slow
MEMBERS = 20
SERVER = """
import sys, time
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
with Supervisor(Store(), 2, "tests.engine.jobs.fake:run", preload=()):
    time.sleep(600)
"""


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


def test_a_batch_of_twenty_resumes_by_itself_after_kills(store: Store, starts: Path) -> None:
    runs = [f"run-{number}" for number in range(MEMBERS)]
    members = [
        BatchMember(run, {"id": run, "rounds": 12, "starts": str(starts), "seed": number, "pause": 0.02})
        for number, run in enumerate(runs)
    ]
    batch = Batch("leak grid", "twenty attacks", tuple(members))
    store.batches.request(batch, "ann")

    def finished() -> int:
        return Counter(store.statuses(runs).values())["finished"]

    server = start()
    for killed, moment in (("worker", 3), ("server", 7), ("both", 12)):
        wait_until(lambda moment=moment: finished() >= moment, f"{moment} finished runs")  # type: ignore[misc]
        workers = children(server.pid)
        for worker in workers if killed in ("worker", "both") else ():
            os.kill(worker, signal.SIGKILL)
        if killed in ("server", "both"):
            server.kill()
            server.wait()
            server = start()
    try:
        wait_until(lambda: finished() == MEMBERS, "all runs")
    finally:
        server.kill()
        server.wait()
    assert all(matches_undisturbed_run(store, run) for run in runs)
    begun = Counter(line[0] for line in start_lines(starts) if line[2] == "0")
    # A run begins twice only if it was killed before its first checkpoint, and two run at once.
    assert set(begun) == set(runs) and sum(begun.values()) <= MEMBERS + 2 * 3
    finished_before = [run for run in runs if begun[run] == 1]
    assert len(finished_before) >= MEMBERS - 2 * 3
