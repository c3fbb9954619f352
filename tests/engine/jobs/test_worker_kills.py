"""kill -9 of workers, supervisors and both, at ten moments. Afterwards the result is the same, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from engine.environment import ROOT
from engine.jobs.process_id import start_time
from engine.jobs.store import Store
from tests.engine.jobs.conftest import SubmitRun, Supervise, wait_for_end, wait_until
from tests.engine.jobs.test_supervisor import last_worker_pid, matches_undisturbed_run, start_lines, wait_for_round

RANDOM = Random(20)
ROUNDS = 30
WORKER = [("inside-file", RANDOM.randrange(3, 28, 3)) for _ in range(2)]
WORKER += [("after-file", RANDOM.randrange(3, 28, 3)) for _ in range(2)]
SUPERVISOR = [(moment, RANDOM.randint(2, 9)) for moment in ("before-commit", "after-commit", "both") for _ in range(2)]


def serve(home: Path, workers: int, moment: str = "", at: int = 0) -> subprocess.Popen[bytes]:
    arguments = [str(home), str(workers)]
    if moment:
        arguments += [moment, str(at)]
    return subprocess.Popen([sys.executable, "-m", "tests.engine.jobs.serve", *arguments], cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "round"), WORKER)
def test_a_worker_killed_while_it_stores_a_payload(
    moment: str, round: int, store: Store, submit_run: SubmitRun, supervise: Supervise, tmp_path: Path, starts: Path
) -> None:
    supervise()
    fault = {"moment": moment, "name": f"checkpoint-{round}", "marker": str(tmp_path / "once")}
    submit_run(rounds=ROUNDS, fault=fault)
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert [int(line[2]) for line in start_lines(starts)] == [0, round - 3]
    assert not list(store.home.folder("one").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "at"), SUPERVISOR)
def test_a_supervisor_killed_while_it_commits(
    moment: str, at: int, store: Store, submit_run: SubmitRun, supervise: Supervise, home: Path, starts: Path
) -> None:
    submit_run(rounds=ROUNDS, pause=0.02)
    assert serve(home, 1, moment, at).wait(30) == -signal.SIGKILL
    worker = last_worker_pid(starts)
    wait_until(lambda: start_time(worker) == "", "the end of the worker")
    assert store.status("one") == "interrupted"
    before = len(store.events("one"))
    submit_run(rounds=ROUNDS)
    supervise()
    assert wait_for_end(store, "one") == "finished"
    assert matches_undisturbed_run(store)
    assert len(start_lines(starts)) == 2
    assert before < len(store.events("one"))


@pytest.mark.slow
def test_a_killed_supervisor_frees_the_cores_even_of_a_busy_worker(
    store: Store, submit_run: SubmitRun, home: Path, starts: Path
) -> None:
    submit_run(act={"kind": "busy", "round": 2})
    server = serve(home, 1)
    wait_for_round(store, 2)
    assert start_time(last_worker_pid(starts)) != ""
    os.kill(server.pid, signal.SIGKILL)
    server.wait(10)
    wait_until(lambda: start_time(last_worker_pid(starts)) == "")
    assert store.status("one") == "interrupted"


@pytest.mark.slow
def test_two_supervisors_on_one_store_never_run_one_id_twice(
    store: Store, submit_run: SubmitRun, home: Path, starts: Path
) -> None:
    runs = [submit_run(f"run-{number}", seed=number, pause=0.002) for number in range(20)]
    servers = [serve(home, 2), serve(home, 2)]
    for run in runs:
        assert wait_for_end(store, run) == "finished"
        assert matches_undisturbed_run(store, run)
    assert [server.wait(30) for server in servers] == [0, 0]
    assert Counter(line[0] for line in start_lines(starts)) == dict.fromkeys(runs, 1)
