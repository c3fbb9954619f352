"""FedDM, DSC and PSG: what they match, and that a new model learns from the pictures."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.compute.condensing import PlainModel
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.methods.synthetic.feddm import Features, FedDM, nearby
from engine.records import Packet, Weights
from engine.training.evaluate import test_logits as logits_of
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import client_contexts, first_state, server_context
from tests.engine.makers import tiny_spec


def alone(method: dict[str, Any], seed: int = 3) -> LoadedPlan:
    return load_plan(
        tiny_spec(method=method, dataset="mnist", clients=1, sampled=1, sampling="all", rounds=1, batch=64, seed=seed)
    )


def accuracy_after(plan: LoadedPlan, noise: bool) -> float:
    """The accuracy of a new model that learnt from the uploaded pictures, or from the noise where they began."""
    server = first_state(plan).server
    with ThreadTeam(1) as team:
        (context,) = client_contexts(plan, plan.cohort(1), 1, 1, 1, team)
        upload, _ = plan.method.train(plan.client(0), Packet(server), None, context)
        if noise:
            begun = plan.method.first_pictures(plan.client(0), None, context)  # type: ignore[attr-defined]
            upload = type(upload)(0, "samples", samples=begun.samples)
        merging = server_context(plan, plan.cohort(1), 1, 1, 1, team)
        learnt: Weights = plan.method.merge(server, [upload], {}, merging)[0]
        correct = logits_of(plan, learnt, team).argmax(1) == plan.test_labels
    return float(correct.double().mean())


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "method",
    [
        {"name": "dsc", "networks": 10, "server-step": 1.0},
        {"name": "psg", "networks": 20, "noise": 1.0},
    ],
)
def test_a_new_model_learns_from_the_pictures(method: dict[str, Any], seed: int) -> None:
    plan = alone(method, seed)
    assert accuracy_after(plan, noise=False) >= accuracy_after(plan, noise=True) + 0.2


def test_the_mean_features_match_after_the_steps() -> None:
    plan = alone({"name": "feddm", "begins": "noise", "iterations": 60, "radius": 1e-6, "per-class": 5})
    client, server = plan.client(0), first_state(plan).server
    assert isinstance(plan.method, FedDM)
    with ThreadTeam(1) as team:
        (context,) = client_contexts(plan, plan.cohort(1), 1, 1, 1, team)
        begun = plan.method.first_pictures(client, None, context)
        upload, _ = plan.method.train(client, Packet(server), None, context)
    assert upload.samples is not None
    model = PlainModel.of(plan.world, server, torch.Generator())
    features = Features(model.module, plan.world.head[0])
    apart = {"noise": 0.0, "made": 0.0}
    with torch.no_grad():
        for label in range(10):
            real = features.means(client.x[client.y == label])
            for name, samples in (("noise", begun.samples), ("made", upload.samples)):
                means = features.means(samples.x[samples.y == label])
                apart[name] += sum(float((a - b).square().sum()) for a, b in zip(means, real, strict=True))
    features.remove()
    assert apart["made"] < 0.1 * apart["noise"]


def test_models_near_the_server_stay_within_the_radius() -> None:
    start = {"a": torch.zeros(3, 4), "b": torch.ones(5)}
    rng = torch.Generator().manual_seed(1)
    lengths = []
    for _ in range(20):
        point = nearby(start, 2.0, rng)
        lengths.append(float(sum((point[name] - start[name]).square().sum() for name in start) ** 0.5))
    assert max(lengths) <= 2.0 and min(lengths) < 0.6 and max(lengths) > 1.4


def test_feddm_refuses_a_class_that_a_client_lacks() -> None:
    with pytest.raises(BadInput, match="compares class by class, and client"):
        make_plan(tiny_spec(method="feddm", partition={"name": "dirichlet", "alpha": 0.05}))


def test_a_one_shot_method_says_what_its_paper_has() -> None:
    (problem,) = tiny_spec(method="dsc").method.problems(tiny_spec(method="dsc"))
    assert not problem.fatal and "one client with all data and one round" in problem.reason
    assert alone({"name": "dsc"}).method.problems(alone({"name": "dsc"}).spec) == ()
