"""The plan of a run: the partition, the first weights, δ, and the noise that the run uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from engine.errors import BadInput
from engine.methods import METHODS
from engine.models import MODELS, Model
from engine.part import Problem
from engine.privacy.ledger import Ledger
from engine.training.plan import load_plan, make_plan
from tests.engine.makers import tiny_spec


def refused(**fields: Any) -> str:
    """The message with which a plan of these fields is refused."""
    with pytest.raises(BadInput) as caught:
        make_plan(tiny_spec(**fields))
    return str(caught.value)


def test_the_world_has_the_values_of_the_spec() -> None:
    spec = tiny_spec(method="udp-fedavg", honest_share=0.75, momentum=0.5, weight_decay=0.01)
    world = make_plan(spec).world
    assert (world.clients, world.sampled, world.sampling, world.rounds, world.honest) == (40, 6, "poisson", 2, 0.75)
    assert (world.local, world.rate) == (spec.local, 6 / 40)
    assert (world.shape, world.classes, len(world.sizes), sum(world.sizes)) == ((1, 28, 28), 10, 40, 12_000)
    assert (world.mean, world.std) == spec.dataset.moments == ((0.2860,), (0.3530,))
    unchanged = make_plan(tiny_spec(dataset={"name": "cifar10", "normalise": False})).world
    assert (unchanged.mean, unchanged.std) == ((0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize("partition", ["iid", "dirichlet"])
def test_every_picture_goes_to_one_client_unchanged(partition: str) -> None:
    plan = load_plan(tiny_spec(partition=partition))
    data = plan.spec.dataset.load()
    assert torch.equal(torch.cat(plan.train).sort().values, torch.arange(len(data.train_y)))
    assert torch.equal(torch.cat(plan.test).sort().values, torch.arange(len(data.test_y)))
    mean, std = plan.world.mean[0], plan.world.std[0]
    for client in (plan.client(0), plan.client(17), plan.client(39)):
        places = plan.train[client.id]
        assert len(client.y) == plan.world.sizes[client.id]
        assert torch.equal(client.y, data.train_y[places])
        torch.testing.assert_close(client.x * std + mean, data.train_x[places], atol=1e-5, rtol=0)
    torch.testing.assert_close(plan.test_x * std + mean, data.test_x, atol=1e-5, rtol=0)
    # other runs share these tensors: they are not normalised in place
    assert float(data.train_x.min()) == 0 and float(data.train_x.max()) == 1


def test_a_plan_reads_no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tiny_spec(method="udp-fedavg", partition="dirichlet")
    loaded = load_plan(spec)
    monkeypatch.setattr(type(spec.dataset), "load", None)  # reading a picture would fail
    plan = make_plan(spec)
    assert plan.world.sizes == loaded.world.sizes and plan.delta == loaded.delta
    assert all(torch.equal(plan.world.weights[name], tensor) for name, tensor in loaded.world.weights.items())
    assert plan.cohort(1) == loaded.cohort(1)
    counts = plan.counts()
    assert counts["train"].shape == (40, 10) and counts["train"].sum(1).tolist() == list(plan.world.sizes)
    assert int(counts["test"].sum()) == len(loaded.test_labels)


def test_first_weights_depend_only_on_the_seed() -> None:
    first = make_plan(tiny_spec()).world.weights
    same = make_plan(tiny_spec(method="fedsgd", rounds=9)).world.weights
    other = make_plan(tiny_spec(seed=4)).world.weights
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert all(not torch.equal(first[name], other[name]) for name in first)


# --- δ -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "delta"),
    [
        ({"method": "udp-fedavg"}, 1e-5),
        ({"method": "udp-fedavg", "clients": 12_000 // 6 * 5}, 1e-5),
        ({"method": "dp-fedavg"}, 1 / 120_000),
        ({"method": "dp-fedavg", "delta": 3e-6}, 3e-6),
        ({"method": "udp-fedavg", "delta": 0.02}, 0.02),
    ],
)
def test_delta_is_small_for_every_protected_unit(fields: dict[str, Any], delta: float) -> None:
    assert make_plan(tiny_spec(**fields)).delta == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize(
    ("method", "delta", "limit"),
    [
        ("udp-fedavg", 0.025, "0.025 for 40 clients"),
        ("udp-fedavg", 0.03, "0.025 for 40 clients"),
        ("dp-fedavg", 1 / 12_000, "8.33e-05 for 12000 pictures"),
        ("dp-fedavg", 0.02, "8.33e-05 for 12000 pictures"),
    ],
)
def test_a_delta_that_would_allow_to_publish_one_is_refused(method: str, delta: float, limit: str) -> None:
    text = refused(method=method, delta=delta)
    assert text.startswith(f"run: delta: must be below 1/n = {limit}, got {delta!r}. A larger δ would allow")


# --- refusals ----------------------------------------------------------------------------------------------


class Normed(Model):
    """A model with batch normalisation."""

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, classes))

    def fill(self, layer: nn.Module, rng: torch.Generator) -> None:
        if not isinstance(layer, nn.BatchNorm1d):
            super().fill(layer, rng)


class Picky(Model):
    """A model with a warning and a fatal problem."""

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        return (Problem("it may be slow", "Use a small batch", fatal=False), Problem("picky: no such size", "Use 28"))


@pytest.fixture(autouse=True)
def odd_models() -> Iterator[None]:
    for name, model in (("normed", Normed), ("picky", Picky)):
        MODELS.add(name, title="odd", source="tests")(model)
    yield
    for name in ("normed", "picky"):
        del MODELS._parts[name]


def test_batch_normalisation_is_refused_for_a_method_with_a_guarantee() -> None:
    text = refused(model="normed", method="udp-fedavg")
    assert text.startswith("udp-fedavg: normed has batch normalisation, which mixes the pictures of a batch")
    assert text.endswith("Choose a model with group normalisation.")
    assert make_plan(tiny_spec(model="normed", method="fedavg")).world.weights


def test_a17_without_another_client_there_is_no_such_view() -> None:
    for method in ("fedavg", "udp-fedavg"):
        plan = make_plan(tiny_spec(method=method, clients=1, sampled=1))
        assert plan.guarantee.absent["client"] == "there is no other client"
        assert "client" not in {answer.view for answer in plan.answers(plan.ledger(1))}
    assert refused(method="udp-fedavg", clients=1, sampled=1, target_epsilon=1.0, view="client") == (
        "run: target-epsilon: the client view does not apply: there is no other client. Choose another view."
    )


@pytest.mark.parametrize(
    ("partition", "limited"), [("iid", False), ("dirichlet", False), ("shards", True), ("classes-per-client", True)]
)
def test_the_classes_of_a_client_follow_from_the_rule(partition: str, limited: bool) -> None:
    plan = make_plan(tiny_spec(partition=partition, clients=20, sampled=4))
    held = plan.world.held
    assert len(held) == 20 and plan.world.delta == plan.delta
    for client, row in enumerate(plan.counts()["train"].tolist()):
        found_in_data = {label for label, count in enumerate(row) if count}
        assert found_in_data <= set(held[client])
        assert (set(held[client]) == set(range(10))) != limited


def test_the_first_fatal_problem_is_the_message() -> None:
    assert refused(model="picky") == "picky: no such size. Use 28."


# --- the noise ---------------------------------------------------------------------------------------------


def test_without_a_target_the_noise_is_that_of_the_spec() -> None:
    spec = tiny_spec(method={"name": "udp-fedavg", "noise": 2.5})
    assert make_plan(spec).method is spec.method


def test_the_solved_noise_is_the_least_of_four_digits() -> None:
    plan = make_plan(tiny_spec(method={"name": "udp-fedavg", "clip": 3.0}, target_epsilon=5.0, view="aggregate"))
    noise = plan.method.noise  # type: ignore[attr-defined]
    assert noise != 1.0 and plan.method.clip == 3.0  # type: ignore[attr-defined]
    for value, within in ((noise, True), (noise * 0.998, False)):
        epsilon = plan.ledger(2, plan.method.with_(noise=value)).answer("aggregate").value
        assert epsilon is not None and (epsilon <= 5.0) is within


def test_a_target_that_no_noise_reaches_is_refused() -> None:
    text = refused(method="udp-fedavg", target_epsilon=1e-6, view="server", rounds=100)
    assert text.startswith("target ε: must be within reach (the noise 1000 gives ε = ") and "got 1e-06" in text
    fixed = refused(method="udp-fedavg", sampling="fixed", target_epsilon=8.0, view="outsider")
    assert fixed.startswith("run: target-epsilon: ") and "in the outsider view: exactly K of the N clients" in fixed


def test_the_ledger_of_a_plan_is_the_sum_of_its_rounds() -> None:
    plan = make_plan(tiny_spec(method="udp-fedavg", rounds=5))
    ledger = Ledger(40, plan.delta)
    for round in range(1, 4):
        ledger.add(plan.method.releases(plan.world, round, plan.cohort(round)))
    assert plan.ledger(3).answers() == ledger.answers()
    noisier = METHODS["udp-fedavg"](noise=2.0)  # type: ignore[call-arg]
    assert plan.ledger(3, noisier).answer("server").value < ledger.answer("server").value  # type: ignore[operator]


def test_the_same_partition_of_the_same_data_is_made_once() -> None:
    first = load_plan(tiny_spec(method="fedavg"))
    same = load_plan(tiny_spec(method={"name": "udp-fedavg", "noise": 3.0}))
    assert first.clients is same.clients and first.test_x is same.test_x
    for change in ({"seed": 4}, {"seed": 5}, {"clients": 41}, {"partition": "shards"}, {"dataset": {"name": "mnist"}},
                   {"dataset": {"name": "fashion-mnist", "normalise": False}}):  # fmt: skip
        assert load_plan(tiny_spec(**change)).clients is not first.clients
    later = load_plan(tiny_spec())  # the cache is full, so the first partition is made again, with the same result
    assert later.clients is not first.clients
    assert all(torch.equal(client.x, before.x) for client, before in zip(later.clients, first.clients, strict=True))


def test_the_seeds_of_a_sweep_share_their_partitions() -> None:
    plans = [load_plan(tiny_spec(seed=seed)) for seed in (5, 6, 7)]
    again = [load_plan(tiny_spec(seed=seed, method={"name": "fedceo"})) for seed in (5, 6, 7)]
    assert all(first.clients is second.clients for first, second in zip(plans, again, strict=True))


def test_a_large_data_set_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.training.plan.SMALL", 0)
    assert load_plan(tiny_spec(seed=77)).clients is not load_plan(tiny_spec(seed=77)).clients
