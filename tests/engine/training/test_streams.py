"""Two runs of one seed share weights, partition, cohorts and batches, and never their noise."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.leakage import probe
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import first_state, train_round
from tests.engine.makers import tiny_spec


def plan_of(noise: float, method: str = "udp-fedavg", **settings: Any) -> LoadedPlan:
    return load_plan(tiny_spec(method={"name": method, "noise": noise, **settings}, sampling="fixed", rounds=1))


def vector(weights: Any) -> Tensor:
    return torch.cat([tensor.flatten().double() for tensor in weights.values()])


def model_after_a_round(noise: float, **settings: Any) -> Tensor:
    plan = plan_of(noise, **settings)
    with ThreadTeam(1) as team:
        return vector(train_round(plan, first_state(plan), 1, team).server)


def rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def test_a12_two_runs_of_one_seed_do_not_cancel_to_the_model_without_noise() -> None:
    """With shared normals, 2·w(.5) - w(1) was the model without noise, up to an error of 2e-8."""
    clean, half, whole = (model_after_a_round(noise) for noise in (0.0, 0.5, 1.0))
    std = 0.1 / 6  # server step · clip / clients of a round
    assert rms(half - clean) == pytest.approx(0.5 * std, rel=0.02)
    assert rms(2 * half - whole - clean) == pytest.approx(math.sqrt(2) * std, rel=0.02)


def test_a12_runs_with_dp_sgd_do_not_share_their_noise() -> None:
    clean, half, whole = (model_after_a_round(noise, method="dp-fedavg", clip=0.01) for noise in (0.0, 0.5, 1.0))
    assert rms(2 * half - whole - clean) > rms(whole - clean)


def test_a12_two_columns_of_a_grid_do_not_cancel_to_the_clean_upload() -> None:
    """Probes of the same pictures against two sizes of noise."""
    picture = torch.rand(1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    uploads: list[Tensor] = []
    for noise in (0.0, 0.5, 1.0):
        plan = plan_of(noise, **{"noise-split": "full-local"})
        victim = probe.make_victim(plan, 1, picture, torch.tensor([3]))
        with ThreadTeam(1) as team:
            uploads.append(vector(probe.probe(plan, [], victim, "server", team).upload.model))
    clean, half, whole = uploads
    assert rms(2 * half - whole - clean) == pytest.approx(math.sqrt(2), rel=0.02)


def test_a12_a_run_and_its_twin_share_everything_else() -> None:
    plan, twin = plan_of(0.0), plan_of(1.0)
    assert plan.cohort(1) == twin.cohort(1)
    assert all(torch.equal(plan.world.weights[name], twin.world.weights[name]) for name in plan.world.weights)
    assert all(torch.equal(ours.x, theirs.x) for ours, theirs in zip(plan.clients, twin.clients, strict=True))
    place = (1, plan.cohort(1)[0], 1)
    batches = [seeds.rng("batches", *place).get_state() for seeds in (plan.seeds, twin.seeds)]
    streams = [seeds.noise("noise", *place).get_state() for seeds in (plan.seeds, twin.seeds)]
    assert torch.equal(*batches) and not torch.equal(*streams)


def test_a_probe_of_other_pictures_has_other_noise() -> None:
    plan = plan_of(1.0)
    pictures = torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    victims = [probe.make_victim(plan, 1, pictures[[place]], torch.tensor([3])) for place in range(2)]
    first, second = (probe.probe_seeds(plan, victim).noise("noise").get_state() for victim in victims)
    assert not torch.equal(first, second) and not torch.equal(first, plan.seeds.noise("noise").get_state())
