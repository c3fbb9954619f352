"""Iterations per second of Inverting Gradients on LeNet-5. The peer is the package `breaching` on the same target.

Nothing else needs the peer, so you install it separately, by the command in INSTALL. Without it only our code is
measured.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

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
SMOOTHNESS = 0.01  # of both
PROMISE = "at least as many iterations/s as breaching"
INSTALL = "pip install --no-deps breaching==0.1.2 hydra-core omegaconf antlr4-python3-runtime==4.9.3 pyyaml"


def measure() -> BenchRow:
    set_thread_modes()
    plan = load_plan(RUN)
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, data.test_x[:1], data.test_y[:1]), "server", team)
    attack = InvertingGradients(iterations=ITERATIONS, smoothness=SMOOTHNESS)
    module = plan.world.build(torch.Generator())

    def ours() -> None:
        for _ in attack.reconstruct(exposure, module, None, AttackContext(Seeds(0))):
            pass

    peer = breaching_attack(plan, exposure, data.test_y[:1], ITERATIONS, SMOOTHNESS)
    times = time_pair(ours, peer or ours, repeats=5)
    our_row = {"iterations/s": ITERATIONS / min(times.ours)}
    if peer is None:
        return BenchRow("inversion", our_row, promise=PROMISE, missing=INSTALL)
    peer_row = {"iterations/s": ITERATIONS / min(times.peer)}
    return BenchRow("inversion", our_row, peer_row, times.ratio, PROMISE, times.ratio >= 1)


def breaching_attack(
    plan: LoadedPlan, exposure: Exposure, labels: Tensor, iterations: int, smoothness: float | None = None
) -> Callable[[], Any] | None:
    """The same attack on the same target, with the true labels. None if the package is not installed.

    Without `smoothness`, it has that of the package's preset.
    """
    torchvision()
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # the package prints at its import
            warnings.simplefilter("ignore")
            import breaching as package  # type: ignore[import-not-found,unused-ignore]

            logging.disable(logging.INFO)
            config = package.get_attack_config("invertinggradients")
    except ImportError:
        return None
    config.optim.max_iterations = iterations
    config.optim.callback = 1_000_000
    if smoothness is not None:
        config.regularization.total_variation.scale = smoothness
    module = plan.world.build(torch.Generator())
    setup = {"device": torch.device("cpu"), "dtype": torch.float}
    attacker = package.attacks.prepare_attack(module, nn.CrossEntropyLoss(), config, setup)
    protocol = exposure.protocol
    metadata = SimpleNamespace(shape=exposure.shape, mean=protocol.mean, std=protocol.scale, modality="vision")
    payload = [{"parameters": list(exposure.packet.model.values()), "buffers": None, "metadata": metadata}]
    facts = {"num_data_points": len(labels), "labels": labels, "local_hyperparams": None}
    shared = [{"gradients": list(exposure.upload.model.values()), "buffers": None, "metadata": facts}]
    return lambda: attacker.reconstruct(payload, shared, {})
