"""Thirty rounds of FedAvg with the MLP. The peer is an nn.Module with torch's SGD, one client after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from engine.bench import BenchRow
from engine.bench.clock import time_pair
from engine.compute.threads import set_thread_modes
from engine.events import Event, Measured
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan

REPEATS = 7
PROMISE = "at least 2 times, accuracy equal to unstacked"


def measure() -> BenchRow:
    spec = RunSpec()  # 12,000 pictures, 100 clients, 10 per round, 30 rounds, 2 epochs, batch 32
    plan = load_plan(spec)
    stacked = last_accuracy(run(spec, threads=2))
    unstacked = last_accuracy(run_unstacked(spec))
    times = time_pair(lambda: list(run(spec, threads=2)), lambda: module_loop(plan, threads=1), REPEATS)
    ours = {"s": min(times.ours), "accuracy": stacked, "accuracy unstacked": unstacked}
    kept = times.ratio >= 2 and abs(stacked - unstacked) <= 0.002
    return BenchRow("rounds-mlp", ours, {"s": min(times.peer)}, times.ratio, PROMISE, kept)


def module_loop(plan: LoadedPlan, threads: int) -> float:
    """The usual loop of this field: one module, torch's optimiser, one client after the other, a test every round."""
    set_thread_modes()
    torch.set_num_threads(threads)
    spec = plan.spec
    module = plan.world.build(torch.Generator())
    module.load_state_dict(dict(plan.world.weights))
    rng = Seeds(0).rng("bench")
    correct = torch.empty(0)
    server = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    for round in range(1, spec.rounds + 1):
        cohort = plan.cohort(round)
        total = {name: torch.zeros_like(tensor) for name, tensor in server.items()}
        for client in cohort:
            module.load_state_dict(server)
            _train(module, plan.client(client).x, plan.client(client).y, spec, rng)
            for name, tensor in module.state_dict().items():
                total[name] += tensor / len(cohort)
        server = total
        module.load_state_dict(server)
        module.eval()
        with torch.no_grad():
            correct = module(plan.test_x).argmax(1) == plan.test_labels
    return float(correct.float().mean())


def _train(module: nn.Module, x: torch.Tensor, y: torch.Tensor, spec: RunSpec, rng: torch.Generator) -> None:
    module.train()
    optimiser = torch.optim.SGD(module.parameters(), lr=spec.lr)
    for _ in range(spec.epochs):
        for indices in torch.randperm(len(y), generator=rng).split(spec.batch):
            optimiser.zero_grad()
            functional.cross_entropy(module(x[indices]), y[indices]).backward()
            optimiser.step()


def run_unstacked(spec: RunSpec) -> Iterator[Event]:
    """The same run, but each client is trained separately."""
    model: Any = type(spec.model)
    model.stackable = False
    try:
        yield from run(spec, threads=1)
    finally:
        model.stackable = True


def last_accuracy(events: Iterator[Event]) -> float:
    values = []
    for event in events:
        if isinstance(event, Measured) and event.name == "accuracy" and event.who == "global":
            values.append(event.value)
    return float(values[-1] or 0.0)
