"""DP-FedAvg: noise at every step inside the client, and one ledger for the whole run."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.leakage import probe
from engine.methods import METHODS
from engine.methods.record_level.dp_fedavg import DPFedAvg
from engine.privacy.accountant import ORDERS
from engine.records import VIEWS, Gaussian, Seat, Upload
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import Exchange, opening, play, server_desk
from tests.engine.makers import tiny


def loaded_plan(**asked: Any) -> LoadedPlan:
    asked = {"noise": 1.0, "clip": 1.0, **asked}
    method = {"name": "dp-fedavg", **{key: asked.pop(key) for key in ("noise", "clip")}}
    return load_plan(tiny(method=method, model={"name": "mlp", "hidden": 8}, **asked))


def first_uploads(there: LoadedPlan) -> Exchange:
    seen: list[Exchange] = []
    with ThreadTeam(2) as team:
        play(there, opening(there), 1, team, watch=seen.append)
    return seen[0]


# --- what is released --------------------------------------------------------------------------------------


def test_a_release_for_each_size_and_view() -> None:
    plan = make_plan(tiny(method="dp-fedavg", partition={"name": "dirichlet", "alpha": 0.3}, epochs=3))
    cohort = plan.cohort(1)
    sizes = {plan.world.sizes[client] for client in cohort}
    assert len(sizes) > 2
    found = plan.method.releases(plan.world, 1, cohort)
    assert len(found) == len(sizes) * len(VIEWS)
    for one in found:
        (size,) = {plan.world.sizes[client] for client in one.clients or ()}
        assert one.law == Gaussian(1.0, min(1.0, 100 / size), 3 * max(1, size // 100))
        assert (one.unit, one.adjacency, one.sampling, one.observers) == ("record", "add-remove", "poisson", None)
        assert one.bound == ("" if one.view == "server" else "upper bound")
    for view in VIEWS:
        paying = [client for one in found if one.view == view for client in one.clients or ()]
        assert sorted(paying) == list(cohort)


@cache
def one_step() -> Any:
    """Opacus' Rényi curve of one step at a third of 300 pictures; steps add up."""
    return compute_rdp(q=100 / 300, noise_multiplier=1.2, steps=1, orders=ORDERS)


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_one_ledger_for_the_whole_run_equals_a_direct_composition(sampling: str) -> None:
    plan = make_plan(tiny(method={"name": "dp-fedavg", "noise": 1.2}, sampling=sampling, rounds=8, epochs=2))
    assert set(plan.world.sizes) == {300}
    spent = []
    for rounds in (1, 2, 8):
        times = [sum(client in plan.cohort(round) for round in range(1, rounds + 1)) for client in range(40)]
        steps = 2 * 3 * max(times)
        direct, _ = get_privacy_spent(orders=ORDERS, rdp=steps * one_step(), delta=1 / 120_000)
        answers = plan.ledger(rounds).answers()
        assert [one.epsilon for one in answers] == pytest.approx([direct] * len(VIEWS), rel=1e-6)
        assert answers[0].worst is not None and times[answers[0].worst] == max(times)
        assert [one.bound for one in answers] == ["", "upper bound", "upper bound", "upper bound"]
        assert {(one.unit, one.adjacency) for one in answers} == {("record", "add-remove")}
        spent.append((max(times), direct))
    assert spent[0] < spent[-1] and spent[0][0] < spent[-1][0]


def test_the_second_round_is_not_free() -> None:
    plan = make_plan(tiny(method="dp-fedavg", sampling="all", sampled=40))
    once, twice = (plan.ledger(rounds).answer("server").epsilon for rounds in (1, 2))
    assert once is not None and twice is not None and once < twice


def test_a_client_that_takes_all_its_pictures_at_once_gains_nothing_by_sampling() -> None:
    plan = make_plan(tiny(method="dp-fedavg", batch=5000, epochs=2))
    (law,) = {one.law for one in plan.method.releases(plan.world, 1, plan.cohort(1))}
    assert law == Gaussian(1.0, 1.0, 2)
    assert plan.ledger(1).answer("server").accountant == "exact"


# --- what is done ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1, 3])
def test_no_picture_counts_for_more_than_the_clip(epochs: int) -> None:
    """Alone in its batch, with a gradient longer than C, a picture moves the model by lr · C at every step."""
    there = loaded_plan(noise=0.0, clip=0.01, lr=0.5, epochs=epochs)
    data = there.spec.dataset.load()
    with ThreadTeam(1) as team:
        who = probe.victim(there, 1, data.test_x[:1], data.test_y[:1])
        received = probe.probe(there, [], who, "server", team).received
    most = epochs * 0.5 * 0.01  # reached where the steps point the same way
    assert (0.999 if epochs == 1 else 0.9) * most <= weights.norm(received) <= 1.001 * most
    exchange = first_uploads(there)
    for upload, used in zip(exchange.uploads, exchange.used, strict=True):
        assert used is not None and len(used) > 170  # Poisson batches of 100 out of 300, three an epoch
        assert 0 < weights.norm(upload.tensors) <= epochs * 3 * 0.5 * 0.01 * 1.5


def test_the_noise_of_an_upload_is_the_declared_one() -> None:
    """With a tiny clip the path hardly moves, so the difference of two uploads is the noise of all steps."""
    asked: dict[str, Any] = {"clip": 1e-4, "epochs": 2}
    quiet, loud = loaded_plan(noise=0.0, **asked), loaded_plan(noise=3.0, **asked)
    told = loud.method.protocol(loud.world, Seat(0, 0, 1, 1, 1, 6), "server")
    assert (told.clip, told.bound, told.noise, told.steps, told.batch) == ("per-example", 1e-4, "gaussian", 6, 100)
    for plain, noised in zip(first_uploads(quiet).uploads, first_uploads(loud).uploads, strict=True):
        difference = torch.cat([t.flatten() for t in weights.subtract(noised.tensors, plain.tensors).values()])
        assert float(difference.std()) == pytest.approx(told.std, rel=0.05)
        assert abs(float(difference.mean())) < 4 * told.std / len(difference) ** 0.5


@pytest.mark.parametrize("cohort", [1, 4, 9])
def test_the_mean_divides_by_the_constant_k(cohort: int) -> None:
    there, method = loaded_plan(), DPFedAvg(server_step=0.5)
    ones = {name: torch.ones_like(tensor) for name, tensor in there.world.weights.items()}
    uploads = [Upload(client, "update", ones) for client in range(cohort)]
    with ThreadTeam(1) as team:
        server, _ = method.merge(there.world.weights, uploads, {}, server_desk(there, range(cohort), 1, 1, 1, team))
    for name, tensor in weights.subtract(server, there.world.weights).items():
        torch.testing.assert_close(tensor, torch.full_like(tensor, 0.5 * cohort / 6), msg=name)


def test_the_noise_each_view_meets() -> None:
    world, method = loaded_plan().world, DPFedAvg(server_step=0.5)
    single, several, outside = (method.protocol(world, Seat(0, 0, 1, 1, 1, 4), view).std for view in VIEWS[:3])
    assert single == pytest.approx(0.1 * 1.0 / 100 * 3**0.5)  # lr · σC / B, three steps
    assert several == pytest.approx(2 * single) and outside == pytest.approx(single * 6**0.5 * 0.5 / 6)


def test_its_promise() -> None:
    world = make_plan(tiny()).world
    assert METHODS["dp-fedavg"]().unit() == "record"
    assert METHODS["dp-fedavg"]().guarantee(world).status == "formal"
    assert DPFedAvg(noise=0.0).guarantee(world).status == "none"
    assert DPFedAvg(noise=0.0).protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").noise == "none"
