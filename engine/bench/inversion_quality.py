"""How near Inverting Gradients comes to the pictures of five uploads. The peer is the preset of `breaching`.

Both take the same number of steps. The peer receives the true labels; ours finds them. Of three attack seeds, the
median counts. The peer is installed as for the bench `inversion`.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from engine.attacks.pictures.inverting_gradients import InvertingGradients
from engine.bench import BenchRow
from engine.bench.inversion import INSTALL, breaching_attack
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam, set_thread_modes
from engine.leakage.judge import in_order_of_originals, measure_pairs
from engine.leakage.probe import make_victim, probe
from engine.records import Exposure
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan

ITERATIONS = 800
SEEDS = (0, 1, 2)
BELOW = 0.5  # dB that our median may be below the peer's
PROMISE = f"on each upload at most {BELOW:g} dB below breaching's preset"
CAT = 3  # its class in CIFAR-10
CONVNET = {"name": "convnet", "width": 32}
RUN = RunSpec(method="fedsgd", dataset="cifar10", clients=10, sampled=5, epochs=1, rounds=1)


@dataclass(frozen=True)
class QualityCase:
    """One upload: the model, and the pictures in it."""

    title: str
    model: Any
    batch: bool  # four test pictures in place of the cat


CASES = (
    QualityCase("convnet cat", CONVNET, False),
    QualityCase("convnet four", CONVNET, True),
    QualityCase("wide convnet cat", "convnet", False),
    QualityCase("lenet5 cat", "lenet5", False),
    QualityCase("lenet5 four", "lenet5", True),
)


@dataclass(frozen=True)
class QualityTarget:
    """The upload of one case, and the truth, which only the measurement reads."""

    plan: LoadedPlan
    exposure: Exposure
    pictures: Tensor  # (m, 3, 32, 32)
    labels: Tensor


def measure() -> BenchRow:
    set_thread_modes()
    ours: dict[str, float] = {}
    peer: dict[str, float] = {}
    for case in CASES:
        target = make_target(case)
        ours[f"{case.title} dB"] = statistics.median(our_psnr(target, seed) for seed in SEEDS)
        peers = [peer_psnr(target, seed) for seed in SEEDS]
        measured = [psnr for psnr in peers if psnr is not None]
        if measured:
            peer[f"{case.title} dB"] = statistics.median(measured)
    if not peer:
        return BenchRow("inversion-quality", ours, promise=PROMISE, missing=INSTALL)
    kept = all(ours[name] >= peer[name] - BELOW for name in ours)
    return BenchRow("inversion-quality", ours, peer, promise=PROMISE, kept=kept)


def make_target(case: QualityCase) -> QualityTarget:
    plan = load_plan(RUN.with_(model=case.model))
    pictures, labels = four_pictures(plan) if case.batch else cat()
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, pictures, labels), "server", team)
    return QualityTarget(plan, exposure, pictures, labels)


def cat() -> tuple[Tensor, Tensor]:
    """The cat of scikit-image, cut to a square of 32 x 32 pixels."""
    from skimage import data

    photo = torch.from_numpy(data.chelsea()).permute(2, 0, 1) / 255  # type: ignore[no-untyped-call]  # (3, 300, 451)
    square = photo[:, :, 75:375].unsqueeze(0)
    return functional.interpolate(square, (32, 32), mode="area"), torch.tensor([CAT])


def four_pictures(plan: LoadedPlan) -> tuple[Tensor, Tensor]:
    """The first four test pictures of different classes."""
    data = plan.spec.dataset.load()
    places: dict[int, int] = {}
    for place, label in enumerate(data.test_y.tolist()):
        places.setdefault(label, place)
        if len(places) == 4:
            break
    chosen = list(places.values())
    return data.test_x[chosen], data.test_y[chosen]


def our_psnr(target: QualityTarget, seed: int) -> float:
    model = target.plan.spec.model
    attack = InvertingGradients(iterations=ITERATIONS).suited_to(normalises=model.normalises, wide=model.wide)
    module = target.plan.world.build(torch.Generator())
    guesses = list(attack.reconstruct(target.exposure, module, None, AttackContext(Seeds(seed))))
    return mean_psnr(guesses[-1].pictures, target.pictures)


def peer_psnr(target: QualityTarget, seed: int) -> float | None:
    """The same for the peer; None if it is not installed."""
    reconstruct = breaching_attack(target.plan, target.exposure, target.labels, ITERATIONS)
    if reconstruct is None:
        return None
    torch.set_rng_state(Seeds(seed).rng("start").get_state())  # the peer draws its start from the global generator
    solution, _ = reconstruct()
    mean = torch.tensor(target.exposure.protocol.mean).view(-1, 1, 1)
    scale = torch.tensor(target.exposure.protocol.scale).view(-1, 1, 1)
    pictures = (solution["data"].detach() * scale + mean).clamp(0, 1)
    return mean_psnr(pictures, target.pictures)


def mean_psnr(guess: Tensor, truth: Tensor) -> float:
    """The mean PSNR over the pictures, each compared with its original."""
    places, pictures = in_order_of_originals(guess, truth)
    return statistics.mean(measure_pairs("psnr", pictures, truth[list(places)]))
