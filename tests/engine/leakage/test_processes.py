"""Processes that take restarts: the same guesses as here, kept warm, gone with their owner or when left."""

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
from engine.errors import LeakLensError, RunFailed
from engine.events import Event, Pictured
from engine.leakage import processes
from engine.leakage.pictures import attack
from engine.leakage.probe import Victim, before, expose
from engine.leakage.processes import AttackProcess, RestartOrder, borrowed_processes
from engine.records import Guess
from engine.specs.attack import AttackSpec
from engine.training.plan import load_plan

pytestmark = pytest.mark.slow

RUN: dict[str, Any] = {
    "dataset": "cifar10", "model": "lenet-sigmoid", "method": "fedsgd",
    "clients": 10, "sampled": 5, "epochs": 1, "rounds": 1,
}  # fmt: skip
PATIENCE_S = 60.0


def asked(iterations: int = 30, restarts: int = 3) -> AttackSpec:
    attack = {"name": "map", "iterations": iterations}
    return AttackSpec(run=RUN, attack=attack, pictures=["test-0"], restarts=restarts)


@pytest.fixture(scope="module")
def order() -> RestartOrder:
    spec = asked()
    plan = load_plan(spec.run)
    with ThreadTeam(1) as team:
        victim = Victim(1, plan.cohort(1)[0], plan.test_x[:1], plan.test_labels[:1])
        exposure = expose(plan, before(plan, 1, [], team), victim, "server", team)
    return RestartOrder(spec.attack, plan.world.build, exposure, None, 0)


@pytest.fixture(scope="module")
def hand() -> Iterator[AttackProcess]:
    hand = warm(AttackProcess())
    yield hand
    hand.end()


def warm(hand: AttackProcess) -> AttackProcess:
    ready = threading.Event()
    hand.when_warm(ready.set)
    assert ready.wait(PATIENCE_S)
    return hand


def same(one: Guess, other: Guess) -> bool:
    return one.loss == other.loss and torch.equal(one.pictures, other.pictures)


def test_over_there_it_is_the_same_to_the_bit(hand: AttackProcess, order: RestartOrder) -> None:
    for restart in (0, 1):
        here, there = list(order.guesses(restart)), list(hand.guesses(order, restart))
        assert len(here) == len(there) > 3 and all(map(same, here, there))
    assert not same(list(order.guesses(0))[-1], list(order.guesses(1))[-1])


def test_an_order_holds_what_an_attacker_has_and_no_truth(order: RestartOrder) -> None:
    assert {field.name for field in fields(order)} == {"attack", "build", "exposure", "prior", "seed"}


def test_an_error_over_there_is_an_error_here(hand: AttackProcess, order: RestartOrder) -> None:
    with pytest.raises(LeakLensError, match="no such thing") as raised:
        list(hand.guesses(RestartOrder(Broken(), order.build, order.exposure, None, 0), 0))  # type: ignore[arg-type]
    assert raised.value.remedy == "Look elsewhere" and hand.alive


class Broken:
    """An attack that meets an error after its first guess."""

    def reconstruct(self, *_: object) -> Iterator[Guess]:
        raise RunFailed("no such thing", "Look elsewhere")


def test_left_in_the_middle_it_ends(order: RestartOrder) -> None:
    hand = warm(AttackProcess())
    guesses = hand.guesses(order, 0)
    next(guesses)
    assert hand.alive
    guesses.close()
    assert not hand.alive


def test_killed_it_says_so(order: RestartOrder) -> None:
    hand = warm(AttackProcess())
    guesses = hand.guesses(order, 0)
    next(guesses)
    os.kill(hand.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="ended by itself"):
        list(guesses)


def test_kept_warm_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_idle", [])
    with borrowed_processes(1) as (first,):
        pass
    with borrowed_processes(2) as (again, other):
        assert again is first and other is not first
        other.end()
    with borrowed_processes(1) as (once_more,):
        assert once_more is first
    first.end()


def test_an_attack_uses_them_and_leaves_none_at_work(monkeypatch: pytest.MonkeyPatch, hand: AttackProcess) -> None:
    monkeypatch.setattr(processes, "_idle", [hand])
    heard: list[int] = []
    take = hand.guesses

    def noted(order: RestartOrder, restart: int) -> Iterator[Guess]:
        heard.append(restart)
        return take(order, restart)

    monkeypatch.setattr(hand, "guesses", noted)
    frames = [event for event in attack(asked(), threads=2) if isinstance(event, Pictured)]
    assert {frame.restart for frame in frames} == {0, 1, 2}
    assert 1 <= len(heard) <= 2 and processes._idle == [hand]


def test_closed_in_the_middle_it_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_idle", [warm(AttackProcess())])
    events: Any = attack(asked(iterations=50_000), threads=2)
    frames: list[Event] = []
    while len({frame.restart for frame in frames if isinstance(frame, Pictured)}) < 2:
        frames.append(next(events))
    began = time.monotonic()
    events.close()
    assert time.monotonic() - began < PATIENCE_S
    assert processes._idle == []  # it was in the middle of its work


OWNER = """
import time
from engine.leakage.processes import Hand
hand = Hand()
print(hand.pid, flush=True)
time.sleep(600)
"""


def test_it_is_gone_with_its_owner() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert owner.stdout
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    owner.stdout.close()
    ends = time.monotonic() + PATIENCE_S
    while there(pid) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not there(pid)


def there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
