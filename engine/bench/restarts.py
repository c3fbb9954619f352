"""Four restarts of an attack on two threads, beside the same four one after the other."""

from __future__ import annotations

from collections.abc import Callable

from engine.bench import BenchRow
from engine.bench.clock import race
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec

THREADS, RESTARTS = 2, 4
ATTACKS = {"map": ("lenet-sigmoid", 1000), "inverting-gradients": ("lenet5", 400)}


def measure() -> BenchRow:
    races = {name: race(asked(name, THREADS), asked(name, 1), turns=3) for name in ATTACKS}
    ratio = min(one.ratio for one in races.values())
    return BenchRow(
        "restarts",
        {f"{name} s": min(one.ours) for name, one in races.items()},
        {f"{name} s": min(one.peer) for name, one in races.items()},
        ratio,
        f"{RESTARTS} restarts on {THREADS} cores at least 1.7 times as fast as in sequence",
        ratio >= 1.7,
    )


def asked(name: str, threads: int) -> Callable[[], object]:
    model, iterations = ATTACKS[name]
    run = {"method": "fedsgd", "dataset": "cifar10", "model": model, "clients": 10, "sampled": 5, "rounds": 1}
    part = {"name": name, "iterations": iterations}
    spec = AttackSpec(run={**run, "epochs": 1}, attack=part, pictures=["test-0"], restarts=RESTARTS)
    return lambda: list(attack(spec, threads=threads))
