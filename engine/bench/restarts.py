"""Four restarts of an attack on two threads. The peer is the same attack with one restart after the other."""

from __future__ import annotations

from collections.abc import Callable

from engine.bench import BenchRow
from engine.bench.clock import time_pair
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec

THREADS = 2
RESTARTS = 4
ATTACKS = {"map": ("lenet-sigmoid", 1000), "inverting-gradients": ("lenet5", 400)}
PROMISE = f"{RESTARTS} restarts on {THREADS} cores at least 1.7 times as fast as in sequence"


def measure() -> BenchRow:
    times = {name: time_pair(attack_job(name, THREADS), attack_job(name, 1), repeats=3) for name in ATTACKS}
    ours = {f"{name} s": min(pair.ours) for name, pair in times.items()}
    peer = {f"{name} s": min(pair.peer) for name, pair in times.items()}
    ratio = min(pair.ratio for pair in times.values())
    return BenchRow("restarts", ours, peer, ratio, PROMISE, ratio >= 1.7)


def attack_job(name: str, threads: int) -> Callable[[], object]:
    """A function that runs this attack with all its restarts."""
    model, iterations = ATTACKS[name]
    run = {"method": "fedsgd", "dataset": "cifar10", "model": model, "clients": 10, "sampled": 5, "rounds": 1}
    part = {"name": name, "iterations": iterations}
    spec = AttackSpec(run={**run, "epochs": 1}, attack=part, pictures=["test-0"], restarts=RESTARTS)
    return lambda: list(attack(spec, threads=threads))
