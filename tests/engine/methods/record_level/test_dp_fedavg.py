"""DP-FedAvg: noise at every step in the client, and one ledger for the whole run."""

from __future__ import annotations

from collections.abc import Sequence
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
from engine.training.rounds import Exchange, first_state, server_context, train_round
from tests.engine.makers import tiny_spec


def loaded_plan(noise: float = 1.0, clip: float = 1.0, **fields: Any) -> LoadedPlan:
    method = {"name": "dp-fedavg", "noise": noise, "clip": clip}
    return load_plan(tiny_spec(method=method, model={"name": "mlp", "hidden": 8}, **fields))


def first_exchange(plan: LoadedPlan) -> Exchange:
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    return exchanges[0]


# --- what is released --------------------------------------------------------------------------------------


def test_a_release_for_each_size_and_view() -> None:
    plan = make_plan(tiny_spec(method="dp-fedavg", partition={"name": "dirichlet", "alpha": 0.3}, epochs=3))
    cohort = plan.cohort(1)
    sizes = {plan.world.sizes[client] for client in cohort}
    assert len(sizes) > 2
    releases = plan.method.releases(plan.world, 1, cohort)
    assert len(releases) == len(sizes) * len(VIEWS)
    clients_by_view: dict[str, list[int]] = {view: [] for view in VIEWS}
    for release in releases:
        assert isinstance(release.clients, Sequence)
        clients_by_view[release.view] += release.clients
        (size,) = {plan.world.sizes[client] for client in release.clients}
        assert release.mechanism == Gaussian(1.0, min(1.0, 100 / size), 3 * max(1, size // 100))
        assert (release.unit, release.adjacency) == ("record", "add-remove")
        assert (release.sampling, release.observers) == ("poisson", None)
        assert release.bound == ("" if release.view == "server" else "upper bound")
    for view in VIEWS:
        assert sorted(clients_by_view[view]) == list(cohort)


@cache
def rdp_of_one_step() -> Any:
    """Opacus' Rényi curve of one step with a third of 300 pictures. The curves of steps add up."""
    return compute_rdp(q=100 / 300, noise_multiplier=1.2, steps=1, orders=ORDERS)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_one_ledger_for_the_whole_run_equals_a_direct_composition(sampling: str) -> None:
    plan = make_plan(tiny_spec(method={"name": "dp-fedavg", "noise": 1.2}, sampling=sampling, rounds=8, epochs=2))
    assert set(plan.world.sizes) == {300}
    spent = []
    for rounds in (1, 2, 8):
        times = [sum(client in plan.cohort(round) for round in range(1, rounds + 1)) for client in range(40)]
        steps = 2 * 3 * max(times)
        direct, _ = get_privacy_spent(orders=ORDERS, rdp=steps * rdp_of_one_step(), delta=1 / 120_000)
        answers = plan.ledger(rounds).answers()
        assert [answer.value for answer in answers] == pytest.approx([direct] * len(VIEWS), rel=1e-6)
        assert answers[0].worst is not None and times[answers[0].worst] == max(times)
        assert [answer.bound for answer in answers] == ["", "upper bound", "upper bound", "upper bound"]
        assert {(answer.unit, answer.adjacency) for answer in answers} == {("record", "add-remove")}
        spent.append((max(times), direct))
    assert spent[0] < spent[-1] and spent[0][0] < spent[-1][0]


def test_the_second_round_costs_privacy() -> None:
    plan = make_plan(tiny_spec(method="dp-fedavg", sampling="all", sampled=40))
    first, second = (plan.ledger(rounds).answer("server").value for rounds in (1, 2))
    assert first is not None and second is not None and first < second


def test_a_client_with_one_full_batch_gains_nothing_from_sampling() -> None:
    plan = make_plan(tiny_spec(method="dp-fedavg", batch=5000, epochs=2))
    (law,) = {release.mechanism for release in plan.method.releases(plan.world, 1, plan.cohort(1))}
    assert law == Gaussian(1.0, 1.0, 2)
    assert plan.ledger(1).answer("server").accountant == "exact"


# --- what is computed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1, 3])
def test_no_picture_counts_for_more_than_the_clip(epochs: int) -> None:
    """A picture alone in its batch, with a gradient longer than C, moves the model by lr · C at every step."""
    plan = loaded_plan(noise=0.0, clip=0.01, lr=0.5, epochs=epochs)
    data = plan.spec.dataset.load()
    with ThreadTeam(1) as team:
        victim = probe.make_victim(plan, 1, data.test_x[:1], data.test_y[:1])
        received = probe.probe(plan, [], victim, "server", team).upload.model
    most = epochs * 0.5 * 0.01  # reached if all steps point the same way
    assert (0.999 if epochs == 1 else 0.9) * most <= weights.norm(received) <= 1.001 * most
    exchange = first_exchange(plan)
    for upload, used in zip(exchange.uploads, exchange.used, strict=True):
        assert used is not None and len(used) > 170  # Poisson batches of 100 out of 300, three per epoch
        assert 0 < weights.norm(upload.model) <= epochs * 3 * 0.5 * 0.01 * 1.5


def test_the_noise_of_an_upload_is_the_declared_noise() -> None:
    """With a tiny clip the path hardly moves, so the difference of two uploads is the noise of all steps."""
    quiet = loaded_plan(noise=0.0, clip=1e-4, epochs=2)
    loud = loaded_plan(noise=3.0, clip=1e-4, epochs=2)
    protocol = loud.method.protocol(loud.world, Seat(0, 0, 1, 1, 1, 6), "server")
    assert (protocol.clip, protocol.bound, protocol.noise) == ("per-example", 1e-4, "gaussian")
    assert (protocol.steps, protocol.batch) == (6, 100)
    for clean, noisy in zip(first_exchange(quiet).uploads, first_exchange(loud).uploads, strict=True):
        difference = torch.cat([t.flatten() for t in weights.subtract(noisy.model, clean.model).values()])
        assert float(difference.std()) == pytest.approx(protocol.std, rel=0.05)
        assert abs(float(difference.mean())) < 4 * protocol.std / len(difference) ** 0.5


@pytest.mark.parametrize("cohort", [1, 4, 9])
def test_the_mean_divides_by_the_constant_k(cohort: int) -> None:
    plan, method = loaded_plan(), DPFedAvg(server_step=0.5)
    ones = {name: torch.ones_like(tensor) for name, tensor in plan.world.weights.items()}
    uploads = [Upload(client, "update", ones) for client in range(cohort)]
    with ThreadTeam(1) as team:
        server, _ = method.merge(plan.world.weights, uploads, {}, server_context(plan, range(cohort), 1, 1, 1, team))
    for name, tensor in weights.subtract(server, plan.world.weights).items():
        torch.testing.assert_close(tensor, torch.full_like(tensor, 0.5 * cohort / 6), msg=name)


def test_the_noise_that_each_view_receives() -> None:
    world, method = loaded_plan().world, DPFedAvg(server_step=0.5)
    single, several, outside = (method.protocol(world, Seat(0, 0, 1, 1, 1, 4), view).std for view in VIEWS[:3])
    assert single == pytest.approx(0.1 * 1.0 / 100 * 3**0.5)  # lr · σC / B, three steps
    assert several == pytest.approx(2 * single) and outside == pytest.approx(single * 6**0.5 * 0.5 / 6)


def test_the_guarantee() -> None:
    world = make_plan(tiny_spec()).world
    assert METHODS["dp-fedavg"]().unit() == "record"
    assert METHODS["dp-fedavg"]().guarantee(world).status == "formal"
    assert DPFedAvg(noise=0.0).guarantee(world).status == "none"
    assert DPFedAvg(noise=0.0).protocol(world, Seat(0, 0, 1, 1, 1, 6), "server").noise == "none"
