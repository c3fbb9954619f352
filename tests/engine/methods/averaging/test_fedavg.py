"""FedAvg: the mean of what clients send, each counted once or by its pictures."""

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
from engine.training.rounds import Exchange, opening, play, server_desk
from tests.engine.makers import tiny


def loaded_plan(**asked: Any) -> LoadedPlan:
    return load_plan(tiny(model={"name": "mlp", "hidden": 8}, partition={"name": "dirichlet", "alpha": 0.5}, **asked))


def merged(method: Method, there: LoadedPlan, uploads: list[Upload]) -> dict[str, torch.Tensor]:
    with ThreadTeam(1) as team:
        context = server_desk(there, [upload.client for upload in uploads], 1, 1, 1, team)
        server, memory = method.merge(there.world.weights, uploads, {}, context)
    assert memory == {}
    return weights.subtract(server, there.world.weights)


def uploads(there: LoadedPlan, clients: tuple[int, ...]) -> list[Upload]:
    """Client k sends k + 1 everywhere."""
    return [
        Upload(k, "update", {n: torch.full_like(t, k + 1.0) for n, t in there.world.weights.items()}) for k in clients
    ]


@pytest.mark.parametrize("weighting", ["uniform", "size"])
@pytest.mark.parametrize("step", [1.0, 0.25])
def test_the_server_adds_the_weighted_mean(weighting: str, step: float) -> None:
    there, who = loaded_plan(), (0, 3, 11)
    shares = [there.world.sizes[k] if weighting == "size" else 1 for k in who]
    expected = step * sum(share * (k + 1) for share, k in zip(shares, who, strict=True)) / sum(shares)
    method = METHODS.make({"name": "fedavg", "weighting": weighting, "server-step": step})
    for tensor in merged(method, there, uploads(there, who)).values():
        torch.testing.assert_close(tensor, torch.full_like(tensor, expected), rtol=1e-5, atol=1e-5)
    assert len(set(shares)) == (3 if weighting == "size" else 1)


def test_without_uploads_nothing_changes() -> None:
    there = loaded_plan()
    assert not any(tensor.any() for tensor in merged(METHODS.make("fedavg"), there, []).values())


def test_a_round_is_the_mean_of_what_each_client_learns_alone() -> None:
    there, seen = loaded_plan(method={"name": "fedavg", "weighting": "size"}), list[Exchange]()
    with ThreadTeam(2) as team:
        state = play(there, opening(there), 1, team, watch=seen.append)
        cohort, alone = there.cohort(1), replace(there, world=replace(there.world, stacked=None))
        ends = [end_of(alone, client, team) for client in cohort]
    share = [there.world.sizes[client] for client in cohort]
    mean = weights.total(ends, [one / sum(share) for one in share])
    assert [upload.client for upload in seen[0].uploads] == list(cohort)
    for name, tensor in state.server.items():
        torch.testing.assert_close(tensor, mean[name], rtol=1e-4, atol=1e-5)


def end_of(there: LoadedPlan, client: int, team: ThreadTeam) -> dict[str, torch.Tensor]:
    from engine.training.rounds import seated

    cohort = there.cohort(1)
    context = seated(there, cohort, 1, 1, 1, team)[cohort.index(client)]
    return dict(sgd.fit_one(context, there.world.weights, there.client(client)))


def test_it_promises_nothing_and_says_so() -> None:
    there, method = loaded_plan(), METHODS.make("fedavg")
    assert method.unit() is None and method.guarantee(there.world).status == "none"
    releases = method.releases(there.world, 1, (0, 3))
    assert [one.view for one in releases] == list(VIEWS) and all(isinstance(one.law, NoNoise) for one in releases)


@pytest.mark.parametrize(("view", "uploads"), [("server", 1), ("aggregate", 6), ("outsider", 5), ("client", 5)])
def test_the_public_facts(view: Any, uploads: int) -> None:
    there = loaded_plan(sampled=5, epochs=3)
    size = there.world.sizes[7]
    told = METHODS.make({"name": "fedavg", "server-step": 0.5}).protocol(there.world, Seat(7, 0, 1, 1, 1, 6), view)
    assert (told.kind, told.clip, told.noise, told.std, told.bound) == ("update", "none", "none", 0.0, None)
    assert (told.uploads, told.server_step, told.steps) == (uploads, 0.5, 3 * -(-size // 100))
    assert told.batch == min(size, 100) and told.drawing == ("whole" if size <= 100 else "shuffled")
    assert told.pictures is None and (told.mean, told.scale) == (there.world.mean, there.world.std)
