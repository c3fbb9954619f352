"""Rounds of FedAvg with LeNet-5 on CIFAR-10. The peer is a plain PyTorch loop with two intra-op threads."""

from __future__ import annotations

from engine.bench import BenchRow
from engine.bench.clock import time_pair
from engine.bench.rounds_mlp import module_loop
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan


def measure() -> BenchRow:
    spec = RunSpec(dataset="cifar10", model="lenet5", clients=10, sampled=4, rounds=2, epochs=1, batch=64)
    plan = load_plan(spec)
    times = time_pair(lambda: list(run(spec, threads=2)), lambda: module_loop(plan, threads=2), repeats=5)
    pictures = spec.rounds * (spec.sampled * spec.epochs * plan.world.sizes[0])
    ours = {"s": min(times.ours), "trained pictures/s": pictures / min(times.ours)}
    peer = {"s": min(times.peer), "trained pictures/s": pictures / min(times.peer)}
    return BenchRow("rounds-lenet", ours, peer, times.ratio, "at least 1.6 times", times.ratio >= 1.6)
