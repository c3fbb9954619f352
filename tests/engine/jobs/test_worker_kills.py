"""kill -9 of workers, supervisors and both, at ten moments; afterwards the same answer, bit for bit."""

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
from engine.jobs.process_id import started
from engine.jobs.store import Store
from tests.engine.jobs.conftest import Ask, Supervise, ended, until
from tests.engine.jobs.test_supervisor import lines, pid, reached, same

CHANCE = Random(20)
ROUNDS = 30
WORKER = [("inside-file", CHANCE.randrange(3, 28, 3)) for _ in range(2)]
WORKER += [("after-file", CHANCE.randrange(3, 28, 3)) for _ in range(2)]
SUPERVISOR = [(moment, CHANCE.randint(2, 9)) for moment in ("before-commit", "after-commit", "both") for _ in range(2)]


def serve(home: Path, workers: int, moment: str = "", at: int = 0) -> subprocess.Popen[bytes]:
    words = [str(home), str(workers), *([moment, str(at)] if moment else [])]
    return subprocess.Popen([sys.executable, "-m", "tests.engine.jobs.serve", *words], cwd=ROOT)


@pytest.mark.parametrize(("moment", "round"), WORKER)
def test_a_worker_killed_around_a_payload(
    moment: str, round: int, store: Store, ask: Ask, supervise: Supervise, tmp_path: Path, starts: Path
) -> None:
    supervise()
    fault = {"moment": moment, "name": f"checkpoint-{round}", "marker": str(tmp_path / "once")}
    ask(rounds=ROUNDS, fault=fault)
    assert ended(store, "one") == "finished"
    assert same(store)
    assert [int(line[2]) for line in lines(starts)] == [0, round - 3]
    assert not list(store.home.folder("one").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "at"), SUPERVISOR)
def test_a_supervisor_killed_around_a_commit(
    moment: str, at: int, store: Store, ask: Ask, supervise: Supervise, home: Path, starts: Path
) -> None:
    ask(rounds=ROUNDS, pause=0.02)
    assert serve(home, 1, moment, at).wait(30) == -signal.SIGKILL
    worker = pid(starts)
    until(lambda: started(worker) == "", "the end of the orphan")
    assert store.status("one") == "interrupted"
    known = len(store.events("one"))
    ask(rounds=ROUNDS)
    supervise()
    assert ended(store, "one") == "finished"
    assert same(store)
    assert len(lines(starts)) == 2
    assert known < len(store.events("one"))


def test_a_killed_supervisor_frees_the_cores_even_of_a_busy_worker(
    store: Store, ask: Ask, home: Path, starts: Path
) -> None:
    ask(act={"kind": "busy", "round": 2})
    served = serve(home, 1)
    reached(store, 2)
    assert started(pid(starts)) != ""
    os.kill(served.pid, signal.SIGKILL)
    served.wait(10)
    until(lambda: started(pid(starts)) == "")
    assert store.status("one") == "interrupted"


@pytest.mark.slow
def test_two_supervisors_on_one_store_never_run_one_id_twice(store: Store, ask: Ask, home: Path, starts: Path) -> None:
    runs = [ask(f"run-{number}", seed=number, pause=0.002) for number in range(20)]
    served = [serve(home, 2), serve(home, 2)]
    for run in runs:
        assert ended(store, run) == "finished"
        assert same(store, run)
    assert [one.wait(30) for one in served] == [0, 0]
    assert Counter(line[0] for line in lines(starts)) == dict.fromkeys(runs, 1)
