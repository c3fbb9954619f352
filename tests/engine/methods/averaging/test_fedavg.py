"""FedAvg: the mean of the uploads, each weighted the same or by the client's pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.compute import sgd, weights
from engine.compute.threads import ThreadTeam
from engine.methods import METHODS, Method
from engine.records import VIEWS, NoNoise, Seat, Upload
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, server_context, train_round
from tests.engine.makers import tiny_spec


def loaded_plan(**fields: Any) -> LoadedPlan:
    return load_plan(
        tiny_spec(model={"name": "mlp", "hidden": 8}, partition={"name": "dirichlet", "alpha": 0.5}, **fields)
    )


def merged_change(method: Method, plan: LoadedPlan, uploads: list[Upload]) -> dict[str, torch.Tensor]:
    with ThreadTeam(1) as team:
        context = server_context(plan, [upload.client for upload in uploads], 1, 1, 1, team)
        server, memory = method.merge(plan.world.weights, uploads, {}, context)
    assert memory == {}
    return weights.subtract(server, plan.world.weights)


def uploads(plan: LoadedPlan, clients: tuple[int, ...]) -> list[Upload]:
    """Client k sends k + 1 in every coordinate."""
    uploads = []
    for client in clients:
        tensors = {name: torch.full_like(tensor, client + 1.0) for name, tensor in plan.world.weights.items()}
        uploads.append(Upload(client, "update", tensors))
    return uploads


@pytest.mark.parametrize("weighting", ["uniform", "size"])
@pytest.mark.parametrize("step", [1.0, 0.25])
def test_the_server_adds_the_weighted_mean(weighting: str, step: float) -> None:
    plan, clients = loaded_plan(), (0, 3, 11)
    shares = [plan.world.sizes[client] if weighting == "size" else 1 for client in clients]
    expected = step * sum(share * (k + 1) for share, k in zip(shares, clients, strict=True)) / sum(shares)
    method = METHODS.make({"name": "fedavg", "weighting": weighting, "server-step": step})
    for tensor in merged_change(method, plan, uploads(plan, clients)).values():
        torch.testing.assert_close(tensor, torch.full_like(tensor, expected), rtol=1e-5, atol=1e-5)
    assert len(set(shares)) == (3 if weighting == "size" else 1)


def test_without_uploads_nothing_changes() -> None:
    plan = loaded_plan()
    assert not any(tensor.any() for tensor in merged_change(METHODS.make("fedavg"), plan, []).values())


def test_a_round_is_the_mean_of_clients_trained_alone() -> None:
    plan = loaded_plan(method={"name": "fedavg", "weighting": "size"})
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        state = train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
        cohort = plan.cohort(1)
        alone = replace(plan, world=replace(plan.world, stacked=None))
        ends = [end_of(alone, client, team) for client in cohort]
    sizes = [plan.world.sizes[client] for client in cohort]
    mean = weights.total(ends, [size / sum(sizes) for size in sizes])
    assert [upload.client for upload in exchanges[0].uploads] == list(cohort)
    for name, tensor in state.server.items():
        torch.testing.assert_close(tensor, mean[name], rtol=1e-4, atol=1e-5)


def end_of(plan: LoadedPlan, client: int, team: ThreadTeam) -> dict[str, torch.Tensor]:
    from engine.training.rounds import client_contexts

    cohort = plan.cohort(1)
    context = client_contexts(plan, cohort, 1, 1, 1, team)[cohort.index(client)]
    return dict(sgd.fit_one(context, plan.world.weights, plan.client(client)))


def test_fedavg_promises_nothing() -> None:
    plan, method = loaded_plan(), METHODS.make("fedavg")
    assert method.unit() is None and method.guarantee(plan.world).status == "none"
    releases = method.releases(plan.world, 1, (0, 3))
    assert [release.view for release in releases] == list(VIEWS)
    assert all(isinstance(release.mechanism, NoNoise) for release in releases)


@pytest.mark.parametrize(("view", "uploads"), [("server", 1), ("aggregate", 6), ("outsider", 5), ("client", 6)])
def test_the_public_facts(view: Any, uploads: int) -> None:
    plan = loaded_plan(sampled=5, epochs=3)
    size = plan.world.sizes[7]
    method = METHODS.make({"name": "fedavg", "server-step": 0.5})
    protocol = method.protocol(plan.world, Seat(7, 0, 1, 1, 1, 6), view)
    assert (protocol.kind, protocol.clip, protocol.noise, protocol.std, protocol.bound) == (
        "update",
        "none",
        "none",
        0.0,
        None,
    )
    assert (protocol.uploads, protocol.server_step, protocol.steps) == (uploads, 0.5, 3 * -(-size // 100))
    assert protocol.batch == min(size, 100) and protocol.drawing == ("whole" if size <= 100 else "shuffled")
    assert protocol.pictures is None and (protocol.mean, protocol.scale) == (plan.world.mean, plan.world.std)
