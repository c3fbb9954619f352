"""Random kills of workers, servers and commands: nothing is lost, and every result is that of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from engine.bench import BenchRow, first_of
from engine.environment import ROOT
from engine.errors import LeakLensError, RunFailed, refusal

KILLS = 300
SEED = 1
ROUNDS = 12
OPTIONS = f"--rounds {ROUNDS} --clients 40 --sampled 4 --epochs 1 --batch 100"
WHAT = ("worker", "server", "command")
PATIENCE_S = 120.0
POLL_S = 0.01
# What a server does with its runs, without its pages: it submits one, and supervises until it is killed.
SERVER = """
import sys, time, json
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.specs.run import RunSpec
store = Store()
spec = RunSpec(**json.loads(sys.argv[1]))
store.submit(spec.id, spec.canonical())
with Supervisor(store, workers=1):
    time.sleep(600)
"""


def measure(count: int = KILLS, seed: int = SEED) -> BenchRow:
    """Kill a process at a random round of each of `count` runs, and resume the run with the same command."""
    if count < 1:
        raise refusal("bench faults: count", "must be at least 1", count, f"Try {KILLS}")
    if sys.platform == "win32":
        raise refusal("bench faults", "needs a system with kill -9", sys.platform, "Run it on Linux or macOS")
    wrong: list[str] = []
    done = dict.fromkeys(WHAT, 0)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = _finish(Path(folder) / "undisturbed")
        for number in range(seed, seed + count):
            what = WHAT[number % len(WHAT)]
            home = Path(folder) / str(number)
            try:
                _kill(what, home, random.Random(number))
                problems = list(_differences(home, _finish(home), undisturbed))
            except (RunFailed, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                problems = [str(error)]
            wrong += [f"kill {number} of a {what}: {problem}" for problem in problems]
            done[what] += 1
    ours = {**done, "wrong": len(wrong), **first_of(wrong)}
    return BenchRow("faults", ours, promise="nothing lost, same results", kept=not wrong)


def _kill(what: str, home: Path, rng: random.Random) -> None:
    """Start the run, and kill one process when a random round has begun."""
    values = {"rounds": ROUNDS, "clients": 40, "sampled": 4, "epochs": 1, "batch": 100}
    command = ["-c", SERVER, json.dumps(values)] if what == "server" else ["-m", "engine", "run", *OPTIONS.split()]
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "LEAKLENS_HOME": str(home), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)
    try:
        _wait_for_round(home, rng.randint(1, ROUNDS - 1), process)
        time.sleep(rng.random() * 0.05)
        if what == "worker":
            for worker in _children(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            process.wait(PATIENCE_S)  # the command finishes with a new worker
        else:
            process.kill()
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def _children(parent: int) -> list[int]:
    """The processes that this process started."""
    listed = subprocess.run(["ps", "-o", "pid=,ppid=", "-A"], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, owner in pairs if int(owner) == parent]


def _wait_for_round(home: Path, round: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the round has begun, or the run has ended before."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if _last_round(home) >= round or process.poll() is not None:
            return
        time.sleep(POLL_S)
    raise RunFailed(f"round {round} did not begin within {PATIENCE_S:g} s")


def _last_round(home: Path) -> int:
    from engine.jobs.store import Store

    if not (home / "leaklens.db").exists():
        return 0
    with suppress(LeakLensError), closing(Store(home)) as store:
        return max((run.round for run in store.runs()), default=0)
    return 0


def _finish(home: Path) -> dict[str, Any]:
    """The answer of the command that runs or resumes the run."""
    environment = {**os.environ, "LEAKLENS_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "engine", "run", *OPTIONS.split(), "--json"]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    if ended.returncode:
        raise RunFailed(f"exit code {ended.returncode}: {ended.stderr.strip()[-300:]}")
    body: dict[str, Any] = json.loads(ended.stdout)
    return body


def _differences(home: Path, body: dict[str, Any], undisturbed: dict[str, Any]) -> Iterator[str]:
    """What differs from the undisturbed run, apart from seconds, and what the store lost."""
    from engine.events import Round
    from engine.jobs.store import Store

    for name, value in undisturbed.items():
        if name != "seconds" and body.get(name) != value:
            yield f"{name} is {body.get(name)}, was {value}"
    with closing(Store(home)) as store:
        runs = store.runs()
        if len(runs) != 1:
            yield f"{len(runs)} runs in the store"
        for run in runs:
            rounds = {event.round for _, event in store.events(run.id) if isinstance(event, Round)}
            if rounds != set(range(1, ROUNDS + 1)):
                yield f"rounds {sorted(rounds)}"
