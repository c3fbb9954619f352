"""Processes that run restarts give the same guesses, are reused, and end with their parent or when closed early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.compute.threads import ThreadTeam
from engine.environment import ROOT
from engine.errors import LeakLensError, RunFailed
from engine.events import Event, Pictured
from engine.leakage import processes
from engine.leakage.pictures import attack
from engine.leakage.probe import Victim, expose, state_before
from engine.leakage.processes import AttackProcess, RestartRequest, borrowed_processes
from engine.records import Guess
from engine.specs.attack import AttackSpec
from engine.training.plan import load_plan

pytestmark = pytest.mark.slow

RUN: dict[str, Any] = {
    "dataset": "cifar10", "model": "lenet-sigmoid", "method": "fedsgd",
    "clients": 10, "sampled": 5, "epochs": 1, "rounds": 1,
}  # fmt: skip
PATIENCE_S = 60.0


def attack_spec(iterations: int = 30, restarts: int = 3) -> AttackSpec:
    attack = {"name": "map", "iterations": iterations}
    return AttackSpec(run=RUN, attack=attack, pictures=["test-0"], restarts=restarts)


@pytest.fixture(scope="module")
def restart_request() -> RestartRequest:
    spec = attack_spec()
    plan = load_plan(spec.run)
    with ThreadTeam(1) as team:
        victim = Victim(1, plan.cohort(1)[0], plan.test_x[:1], plan.test_labels[:1])
        exposure = expose(plan, state_before(plan, 1, [], team), victim, "server", team)
    return RestartRequest(spec.attack, plan.world.build, exposure, None, 0)


@pytest.fixture(scope="module")
def process() -> Iterator[AttackProcess]:
    process = ready_process()
    yield process
    process.end()


def ready_process() -> AttackProcess:
    process = AttackProcess()
    ready = threading.Event()
    process.when_ready(ready.set)
    assert ready.wait(PATIENCE_S)
    return process


def same(first: Guess, second: Guess) -> bool:
    return first.loss == second.loss and torch.equal(first.pictures, second.pictures)


def test_a_process_gives_the_same_guesses_to_the_bit(process: AttackProcess, restart_request: RestartRequest) -> None:
    for restart in (0, 1):
        local = list(restart_request.guesses(restart))
        remote = list(process.guesses(restart_request, restart))
        assert len(local) == len(remote) > 3 and all(map(same, local, remote))
    assert not same(list(restart_request.guesses(0))[-1], list(restart_request.guesses(1))[-1])


def test_a_request_holds_what_an_attacker_has_and_no_truth(restart_request: RestartRequest) -> None:
    held = {"attack", "build", "exposure", "prior", "seed", "device"}
    assert {field.name for field in fields(restart_request)} == held


def test_an_error_in_the_process_is_raised_by_its_parent(
    process: AttackProcess, restart_request: RestartRequest
) -> None:
    broken = RestartRequest(Broken(), restart_request.build, restart_request.exposure, None, 0)  # type: ignore[arg-type]
    with pytest.raises(LeakLensError, match="attack: broken") as caught:
        list(process.guesses(broken, 0))
    assert caught.value.remedy == "Choose another attack" and process.alive


class Broken:
    """An attack that raises an error."""

    def reconstruct(self, *_: object) -> Iterator[Guess]:
        raise RunFailed("attack: broken", "Choose another attack")


def test_it_ends_when_its_guesses_are_closed_early(restart_request: RestartRequest) -> None:
    process = ready_process()
    guesses = process.guesses(restart_request, 0)
    next(guesses)
    assert process.alive
    guesses.close()
    assert not process.alive


def test_a_killed_process_is_an_error(restart_request: RestartRequest) -> None:
    process = ready_process()
    guesses = process.guesses(restart_request, 0)
    next(guesses)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="ended by itself"):
        list(guesses)


def test_an_idle_process_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_idle", [])
    with borrowed_processes(1) as (first,):
        pass
    with borrowed_processes(2) as (reused, second):
        assert reused is first and second is not first
        second.end()
    with borrowed_processes(1) as (reused,):
        assert reused is first
    first.end()


def test_an_attack_uses_a_process_and_returns_it(monkeypatch: pytest.MonkeyPatch, process: AttackProcess) -> None:
    monkeypatch.setattr(processes, "_idle", [process])
    restarts: list[int] = []
    original = process.guesses

    def recorded(request: RestartRequest, restart: int) -> Iterator[Guess]:
        restarts.append(restart)
        return original(request, restart)

    monkeypatch.setattr(process, "guesses", recorded)
    frames = [event for event in attack(attack_spec(), threads=2) if isinstance(event, Pictured)]
    assert {frame.restart for frame in frames} == {0, 1, 2}
    assert 1 <= len(restarts) <= 2 and processes._idle == [process]


def test_an_attack_that_is_closed_early_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_idle", [ready_process()])
    events: Any = attack(attack_spec(iterations=50_000), threads=2)
    frames: list[Event] = []
    while len({frame.restart for frame in frames if isinstance(frame, Pictured)}) < 2:
        frames.append(next(events))
    began = time.monotonic()
    events.close()
    assert time.monotonic() - began < PATIENCE_S
    assert processes._idle == []  # the process ended with its restart


PARENT = """
import time
from engine.leakage.processes import AttackProcess
process = AttackProcess()
print(process.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
