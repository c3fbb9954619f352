"""FedLAP-DP: its ε, the bound of its gradients, and that pictures follow from these gradients alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute import dp_sgd, weights
from engine.compute.context import ClientContext
from engine.compute.threads import ThreadTeam
from engine.methods.record_level.dp_fedavg import DPFedAvg
from engine.methods.record_level.dp_fedprox import DPFedProx
from engine.methods.synthetic.fedlap_dp import FedLAPDP
from engine.privacy.ledger import Ledger
from engine.records import Client, Local, Packet, Seat, World
from engine.seeds import Seeds
from engine.training.plan import make_plan
from tests.engine.makers import tiny_spec

RECORDS, BATCH, CLIP = 30, 8, 0.5


def context_of(world: World, team: ThreadTeam) -> ClientContext:
    return ClientContext(world, Seat(0, 0, 1, 1, 1, 1), Seeds(3, "test"), team)


@pytest.fixture(scope="module")
def world() -> World:
    plain = make_plan(tiny_spec(model={"name": "mlp", "hidden": 8}, clients=2, sampled=2)).world
    local = Local(1, BATCH, 0.1)
    return replace(plain, sizes=(RECORDS, RECORDS), local=local, held=((0, 1), (0, 1)))


def records(world: World, seed: int) -> Client:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn((RECORDS, *world.shape), generator=rng)
    return Client(0, x, torch.randint(0, 2, (RECORDS,), generator=rng))


@pytest.mark.parametrize(("rounds", "epsilon"), [(1, 2.79), (7, 6.72), (15, 10.18), (17, 10.93), (27, 14.31)])
def test_epsilon_is_that_of_theorem_a8_as_corrected(world: World, rounds: int, epsilon: float) -> None:
    """σ 1, q 256/10000, 200 accesses a round, δ 1e-5, by Rényi. The paper prints 14.30 for 27 rounds."""
    paper = replace(world, sizes=(10_000,) * 2, local=Local(1, 256, 0.1))
    method = FedLAPDP(noise=1.0, trajectories=4, stops=5, batches=10)
    ledger = Ledger(2, 1e-5)
    for round in range(1, rounds + 1):
        ledger.add(method.releases(paper, round, [0, 1]))
    answers = {answer.view: answer for answer in ledger.answers()}
    assert answers["server"].value == pytest.approx(epsilon, abs=0.006)
    assert answers["server"].unit == "record" and answers["server"].bound == ""
    assert answers["outsider"].value == pytest.approx(epsilon, abs=0.006)
    assert answers["outsider"].bound == "upper bound"


def first_gradient(world: World, client: Client, batch: Tensor, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """The noised gradient of the first access, where the batch and the noise are held."""
    monkeypatch.setattr(dp_sgd, "poisson_batch", lambda client, rate, rng: batch)
    with ThreadTeam(1) as team:
        return dp_sgd.NoisedGradients(context_of(world, team), client, CLIP, 1.0).at(world.weights)


def test_one_record_moves_the_noised_gradient_by_at_most_the_clip_over_the_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = records(world, 1)
    client.x[3] *= 100  # a record with a long gradient
    batch = torch.zeros(RECORDS, dtype=torch.bool)
    batch[:BATCH] = True
    whole = first_gradient(world, client, batch, monkeypatch)
    rest = torch.arange(RECORDS) != 3
    removed = first_gradient(world, Client(0, client.x[rest], client.y[rest]), batch[rest], monkeypatch)
    other = client.x.clone()
    other[3] = -client.x[3]
    swapped = first_gradient(world, Client(0, other, 1 - client.y), batch, monkeypatch)
    assert 0.5 * CLIP / BATCH < weights.norm(weights.subtract(whole, removed)) <= CLIP / BATCH * (1 + 1e-5)
    one_label = client.y.clone()
    one_label[3] = 1 - one_label[3]
    swapped = first_gradient(world, Client(0, other, one_label), batch, monkeypatch)
    assert CLIP / BATCH < weights.norm(weights.subtract(whole, swapped)) <= 2 * CLIP / BATCH * (1 + 1e-5)


def made_pictures(world: World, method: FedLAPDP, client: Client) -> Tensor:
    with ThreadTeam(1) as team:
        upload, _ = method.train(client, Packet(world.weights), None, context_of(world, team))
    assert upload.samples is not None
    return upload.samples.x


def test_pictures_follow_from_the_noised_gradients_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same recorded gradients with other private data give the same pictures, to the bit."""
    method = FedLAPDP(noise=0.3, trajectories=2, stops=2, batches=2, boost=3, inner=1, per_class=2)
    recorded: list[dict[str, Tensor]] = []
    original = dp_sgd.NoisedGradients.at

    def record(gradients: Any, at: Any) -> dict[str, Tensor]:
        recorded.append(original(gradients, at))
        return recorded[-1]

    monkeypatch.setattr(dp_sgd.NoisedGradients, "at", record)
    pictures = made_pictures(world, method, records(world, 1))
    assert len(recorded) == method.accesses == 8
    replay = iter(recorded)
    monkeypatch.setattr(dp_sgd.NoisedGradients, "at", lambda gradients, at: next(replay))
    assert torch.equal(pictures, made_pictures(world, method, records(world, 2)))
    monkeypatch.setattr(dp_sgd.NoisedGradients, "at", original)
    assert not torch.equal(pictures, made_pictures(world, method, records(world, 2)))


def test_dp_fedprox_without_a_pull_is_dp_fedavg(world: World) -> None:
    client = records(world, 1)
    uploads = []
    with ThreadTeam(1) as team:
        for method in (DPFedAvg(), DPFedProx(mu=0.0), DPFedProx(mu=0.5)):
            upload, _ = method.train(client, Packet(world.weights), None, context_of(world, team))
            uploads.append(upload.model)
    assert all(torch.equal(uploads[0][name], uploads[1][name]) for name in uploads[0])
    assert weights.norm(uploads[2]) < weights.norm(uploads[0])


def test_its_baseline_is_fedlap_with_the_same_steps_and_pictures() -> None:
    method = FedLAPDP(stops=2, batches=3, boost=4, per_class=7, radius=2.5, image_lr=30.0)
    baseline = method.baseline()
    assert baseline is not None and baseline.name == "fedlap"
    same = ("stops", "batches", "boost", "per_class", "radius", "image_lr")
    assert all(getattr(baseline, name) == getattr(method, name) for name in same)
