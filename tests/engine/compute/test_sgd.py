"""Local training: stacking changes nothing but the speed, and the DP step is what its name says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from engine.compute import dp_sgd, noise, sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import Extra
from engine.compute.threads import ThreadTeam
from engine.records import Client, Local, Seat, World
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import make_plan

SIZES = (7, 20, 20, 3, 11, 16, 1)  # ragged on purpose: two groups, uneven last batches


def world(**changes: Any) -> World:
    spec = RunSpec(model={"name": "mlp", "hidden": 12, "bias": True, "dropout": 0.3}, rounds=1)
    return replace(make_plan(spec).world, sizes=SIZES, local=Local(2, 8, 0.1), **changes)


def clients(shape: tuple[int, ...] = (1, 28, 28)) -> list[Client]:
    rng = torch.Generator().manual_seed(5)
    return [
        Client(place, torch.rand(size, *shape, generator=rng), torch.randint(0, 10, (size,), generator=rng))
        for place, size in enumerate(SIZES)
    ]


def contexts(world: World, team: ThreadTeam) -> list[ClientContext]:
    return [
        ClientContext(world, Seat(place, place, 1, 1, 1, len(SIZES)), Seeds(1), team) for place in range(len(SIZES))
    ]


@pytest.mark.parametrize(
    "local",
    [Local(2, 8, 0.1), Local(1, 8, 0.1, momentum=0.9, weight_decay=0.01), Local(3, 50, 0.05, momentum=0.5)],
    ids=["plain", "momentum and decay", "one batch"],
)
@pytest.mark.parametrize("extra", ["none", "offset", "pull"])
def test_stacked_clients_learn_what_single_ones_learn(local: Local, extra: str) -> None:
    here = replace(world(), local=local)
    start = here.weights
    offset = {name: torch.full_like(tensor, 0.01) for name, tensor in start.items()}
    term = {"none": Extra(), "offset": Extra(offset=offset), "pull": Extra(pull=0.7)}[extra]
    with ThreadTeam(2) as team:
        together = sgd.fit(contexts(here, team), [start] * len(SIZES), clients(), [term] * len(SIZES))
        alone = replace(here, stacked=None)
        single = sgd.fit(contexts(alone, team), [start] * len(SIZES), clients(), [term] * len(SIZES))
    for first, second in zip(together, single, strict=True):
        assert weights.norm(weights.subtract(first, start)) > 0.01
        for name in start:
            torch.testing.assert_close(first[name], second[name], rtol=1e-4, atol=2e-6)


def test_clients_keep_their_order_and_their_own_data() -> None:
    here = world()
    with ThreadTeam(1) as team:
        ends = sgd.fit(contexts(here, team), [here.weights] * len(SIZES), clients())
        again = sgd.fit(contexts(here, team)[3:4], [here.weights], clients()[3:4])
    for name in here.weights:
        torch.testing.assert_close(ends[3][name], again[0][name], rtol=1e-4, atol=2e-6)
    assert not torch.equal(ends[0]["hidden.weight"], ends[3]["hidden.weight"])


def test_a_gradient_is_autograds() -> None:
    spec = RunSpec(model={"name": "mlp", "bias": True}, rounds=1)
    here = make_plan(spec).world
    one = clients()[1]
    with ThreadTeam(1) as team:
        told = sgd.gradient(ClientContext(here, Seat(1, 0, 1, 1, 1, 1), Seeds(0), team), here.weights, one.x, one.y)
    module = here.build(torch.Generator())
    module.load_state_dict(dict(here.weights))
    functional.cross_entropy(module(one.x), one.y).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(told[name], parameter.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", ["mlp", "lenet5", "lenet-sigmoid", {"name": "convnet", "width": 8}])
def test_ghost_clipping_is_the_sum_of_clipped_gradients(model: Any) -> None:
    here, bound = make_plan(RunSpec(model=model, rounds=1)).world, 0.4
    one = clients()[0]
    ghost, parameters = dp_sgd.ghost_bench(here, here.weights, bound)
    sgd.seed_dropout(ghost, torch.Generator())
    sums = dp_sgd.clipped_sum(ghost, parameters, one.x, one.y)
    module = here.build(torch.Generator())
    module.load_state_dict(dict(here.weights))
    expected = [torch.zeros_like(parameter) for parameter in module.parameters()]
    lengths = []
    for x, y in zip(one.x.split(1), one.y.split(1), strict=True):
        slopes = torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))
        lengths.append(sum(float(slope.square().sum()) for slope in slopes) ** 0.5)
        for total, slope in zip(expected, slopes, strict=True):
            total += slope * min(1.0, bound / lengths[-1])
    assert max(lengths) > bound  # the clip binds
    ghost_lengths = ghost.get_norm_sample().tolist()
    assert ghost_lengths == pytest.approx(lengths, rel=1e-4)  # else the clip would not bound what one picture changes
    for got, want in zip(sums, expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5)


def test_an_empty_batch_is_noise_alone() -> None:
    here = replace(make_plan(RunSpec(rounds=1)).world, local=Local(1, 1, 1.0))
    empty = Client(0, torch.rand(1, 1, 28, 28), torch.zeros(1).long())
    ghost, parameters = dp_sgd.ghost_bench(here, here.weights, 1.0)
    sums = dp_sgd.clipped_sum(ghost, parameters, empty.x[:0], empty.y[:0])
    assert all(not total.any() for total in sums)


def test_the_noise_of_a_private_step_has_the_std_it_says() -> None:
    spec = RunSpec(method="dp-fedavg", rounds=1)
    here = replace(make_plan(spec).world, local=Local(1, 20, 1.0), sizes=(20,))
    one = replace(clients()[1], id=0)
    with ThreadTeam(1) as team:
        context = ClientContext(here, Seat(0, 0, 1, 1, 1, 1), Seeds(0), team)
        noisy = dp_sgd.fit_private(context, here.weights, one, bound=0.5, multiplier=3.0)
        plain = dp_sgd.fit_private(context, here.weights, one, bound=0.5, multiplier=0.0)
    difference = torch.cat([(noisy[name] - plain[name]).flatten() for name in noisy])
    assert float(difference.std()) == pytest.approx(3.0 * 0.5 / 20, rel=0.02)
    assert context.used is not None and context.used.tolist() == list(range(20))


def test_noise_is_the_generators_own() -> None:
    like = {"a": torch.zeros(40_000), "b": torch.zeros(3, 5)}
    before = torch.random.get_rng_state()
    first, second = (noise.gaussian(like, 2.0, Seeds(1).rng("noise")) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in like)
    assert float(first["a"].std()) == pytest.approx(2.0, rel=0.03)
    assert not noise.gaussian(like, 0.0, Seeds(1).rng("noise"))["a"].any()


def test_one_module_serves_one_world_at_a_time() -> None:
    first, second = make_plan(RunSpec(rounds=1)).world, make_plan(RunSpec(rounds=1, seed=9)).world
    for here in (first, second, first):
        module, _ = sgd.bench(here, here.weights)
        assert torch.equal(dict(module.named_parameters())["head.weight"], here.weights["head.weight"])
