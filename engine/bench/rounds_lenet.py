"""Rounds of FedAvg with LeNet-5 on CIFAR-10: the peer is the same plain loop with two intra-op threads."""

from __future__ import annotations

from engine.bench import BenchRow
from engine.bench.clock import race
from engine.bench.rounds_mlp import module_loop
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan


def measure() -> BenchRow:
    spec = RunSpec(dataset="cifar10", model="lenet5", clients=10, sampled=4, rounds=2, epochs=1, batch=64)
    plan = load_plan(spec)
    found = race(lambda: list(run(spec, threads=2)), lambda: module_loop(plan, threads=2), turns=5)
    many = spec.rounds * (spec.sampled * spec.epochs * plan.world.sizes[0])
    ours = {"s": min(found.ours), "trained pictures/s": many / min(found.ours)}
    peer = {"s": min(found.peer), "trained pictures/s": many / min(found.peer)}
    return BenchRow("rounds-lenet", ours, peer, found.ratio, "at least 1.6 times", found.ratio >= 1.6)
