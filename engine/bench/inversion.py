"""Iterations per second of Inverting Gradients on LeNet-5. The peer is the package `breaching` on the same target.

Nothing else needs the peer, so you install it separately:
`pip install --no-deps breaching==0.1.2 hydra-core omegaconf`, with antlr4-python3-runtime 4.9.3.
Without it only our code is measured.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import nn

from engine.attacks.pictures.inverting_gradients import InvertingGradients
from engine.bench import BenchRow
from engine.bench.clock import time_pair
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam, set_thread_modes
from engine.leakage.probe import make_victim, probe
from engine.records import Exposure
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.vision import torchvision

ITERATIONS = 120
RUN = RunSpec(method="fedsgd", dataset="cifar10", model="lenet5", clients=10, sampled=5, epochs=1, rounds=1)
PROMISE = "at least as many iterations/s as breaching"


def measure() -> BenchRow:
    set_thread_modes()
    plan = load_plan(RUN)
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, data.test_x[:1], data.test_y[:1]), "server", team)
    attack = InvertingGradients(iterations=ITERATIONS)
    module = plan.world.build(torch.Generator())

    def ours() -> None:
        for _ in attack.reconstruct(exposure, module, None, AttackContext(Seeds(0))):
            pass

    peer = breaching_attack(plan, exposure)
    times = time_pair(ours, peer or ours, repeats=5)
    our_row = {"iterations/s": ITERATIONS / min(times.ours)}
    if peer is None:
        return BenchRow("inversion", our_row, promise=f"{PROMISE}; breaching is not installed", kept=None)
    peer_row = {"iterations/s": ITERATIONS / min(times.peer)}
    return BenchRow("inversion", our_row, peer_row, times.ratio, PROMISE, times.ratio >= 1)


def breaching_attack(plan: LoadedPlan, exposure: Exposure) -> Callable[[], object] | None:
    """The same attack, target, labels and number of iterations. None if the package is not installed."""
    torchvision()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import breaching as package  # type: ignore[import-not-found,unused-ignore]

            logging.disable(logging.INFO)
            config = package.get_attack_config("invertinggradients")
    except ImportError:
        return None
    config.optim.max_iterations = ITERATIONS
    config.optim.callback = 1_000_000
    config.regularization.total_variation.scale = 0.01
    module = plan.world.build(torch.Generator())
    setup = {"device": torch.device("cpu"), "dtype": torch.float}
    attacker = package.attacks.prepare_attack(module, nn.CrossEntropyLoss(), config, setup)
    protocol = exposure.protocol
    metadata = SimpleNamespace(shape=exposure.shape, mean=protocol.mean, std=protocol.scale, modality="vision")
    payload = [{"parameters": list(exposure.packet.model.values()), "buffers": None, "metadata": metadata}]
    facts = {"num_data_points": 1, "labels": torch.tensor([3]), "local_hyperparams": None}
    shared = [{"gradients": list(exposure.upload.model.values()), "buffers": None, "metadata": facts}]
    return lambda: attacker.reconstruct(payload, shared, {})
