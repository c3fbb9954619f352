"""Thirty rounds of FedAvg with the MLP: the peer is an nn.Module with torch's SGD, client after client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from engine.bench import BenchRow
from engine.bench.clock import race
from engine.compute.threads import set_thread_modes
from engine.events import Event, Measured
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan

TURNS = 7


def measure() -> BenchRow:
    spec = RunSpec()  # 12,000 pictures, 100 clients, 10 a round, 30 rounds, 2 epochs, batch 32
    plan = load_plan(spec)
    stacked, plain = accuracy(run(spec, threads=2)), accuracy(unstacked(spec))
    found = race(lambda: list(run(spec, threads=2)), lambda: module_loop(plan, threads=1), TURNS)
    ours = {"s": min(found.ours), "accuracy": stacked, "accuracy unstacked": plain}
    kept = found.ratio >= 2 and abs(stacked - plain) <= 0.002
    return BenchRow(
        "rounds-mlp", ours, {"s": min(found.peer)}, found.ratio, "at least 2 times, accuracy equal to unstacked", kept
    )


def module_loop(plan: LoadedPlan, threads: int) -> float:
    """What most code of this field does: one module, torch's optimiser, client after client; tested every round."""
    set_thread_modes()
    torch.set_num_threads(threads)
    spec, module = plan.spec, plan.world.build(torch.Generator())
    module.load_state_dict(dict(plan.world.weights))
    rng, right = Seeds(0).rng("bench"), torch.empty(0)
    server = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    for round in range(1, spec.rounds + 1):
        cohort = plan.cohort(round)
        total = {name: torch.zeros_like(tensor) for name, tensor in server.items()}
        for place in cohort:
            module.load_state_dict(server)
            _train(module, plan.client(place).x, plan.client(place).y, spec, rng)
            for name, tensor in module.state_dict().items():
                total[name] += tensor / len(cohort)
        server = total
        module.load_state_dict(server)
        module.eval()
        with torch.no_grad():
            right = module(plan.test_x).argmax(1) == plan.test_labels
    return float(right.float().mean())


def _train(module: nn.Module, x: torch.Tensor, y: torch.Tensor, spec: RunSpec, rng: torch.Generator) -> None:
    module.train()
    optimiser = torch.optim.SGD(module.parameters(), lr=spec.lr)
    for _ in range(spec.epochs):
        for places in torch.randperm(len(y), generator=rng).split(spec.batch):
            optimiser.zero_grad()
            functional.cross_entropy(module(x[places]), y[places]).backward()
            optimiser.step()


def unstacked(spec: RunSpec) -> Iterator[Event]:
    """The same run with every client on its own."""
    model: Any = type(spec.model)
    model.stackable = False
    try:
        yield from run(spec, threads=1)
    finally:
        model.stackable = True


def accuracy(events: Iterator[Event]) -> float:
    found = [
        one.value for one in events if isinstance(one, Measured) and one.name == "accuracy" and one.who == "global"
    ]
    return float(found[-1] or 0.0)
