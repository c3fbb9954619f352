"""One record-level DP step of LeNet-5 with batch 64. The peer is Opacus with hooks and per-sample gradients."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.nn import functional

from engine.bench import BenchRow
from engine.bench.clock import time_pair
from engine.compute import dp_sgd
from engine.compute.noise import gaussian_added
from engine.compute.sgd import NO_CHANGE, descend
from engine.compute.threads import set_thread_modes
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import make_plan

BATCH = 64


def measure() -> BenchRow:
    set_thread_modes()
    world = make_plan(RunSpec(dataset="cifar10", model="lenet5", clients=1, sampled=1)).world
    rng = Seeds(0).rng("bench")
    x = torch.rand(BATCH, *world.shape, generator=rng)
    y = torch.randint(0, world.classes, (BATCH,), generator=rng)
    ghost, parameters = dp_sgd.loaded_ghost_module(world, world.weights, 1.0)
    names = list(world.weights)

    def ours() -> None:
        sums = dp_sgd.clipped_sum(ghost, parameters, x, y)
        noised = gaussian_added(dict(zip(names, sums, strict=True)), 1.0, rng)
        descend(parameters, [tensor / BATCH for tensor in noised.values()], None, world, world.weights, NO_CHANGE)

    times = time_pair(ours, opacus_step(world, x, y), repeats=9)
    our_row = {"ms": 1000 * min(times.ours)}
    peer_row = {"ms": 1000 * min(times.peer)}
    return BenchRow("dp-step", our_row, peer_row, times.ratio, "at least 4 times", times.ratio >= 4)


def opacus_step(world: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
    """A function that runs the same step with Opacus."""
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    warnings.filterwarnings("ignore", message=".*[Bb]ackward hook is firing.*")
    module = GradSampleModule(world.build(torch.Generator()))
    optimiser = DPOptimizer(
        torch.optim.SGD(module.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH
    )

    def step() -> None:
        optimiser.zero_grad()
        functional.cross_entropy(module(x), y).backward()
        optimiser.step()

    return step
