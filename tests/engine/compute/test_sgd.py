"""Local training: stacked clients get the same weights as single ones, and DP-SGD clips and adds its noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from engine.compute import dp_sgd, sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import FAST_LAYOUT, PLAIN_LAYOUT, StepChange
from engine.compute.threads import ThreadTeam
from engine.records import Client, Local, Seat, World
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import make_plan

SIZES = (7, 20, 20, 3, 11, 16, 1)  # unequal on purpose: two groups, uneven last batches


def world(**changes: Any) -> World:
    spec = RunSpec(model={"name": "mlp", "hidden": 12, "bias": True, "dropout": 0.3}, rounds=1)
    return replace(make_plan(spec).world, sizes=SIZES, local=Local(2, 8, 0.1), **changes)


def clients(shape: tuple[int, ...] = (1, 28, 28)) -> list[Client]:
    rng = torch.Generator().manual_seed(5)
    result = []
    for client, size in enumerate(SIZES):
        x = torch.rand(size, *shape, generator=rng)
        y = torch.randint(0, 10, (size,), generator=rng)
        result.append(Client(client, x, y))
    return result


def contexts(world: World, team: ThreadTeam) -> list[ClientContext]:
    seats = [Seat(client, client, 1, 1, 1, len(SIZES)) for client in range(len(SIZES))]
    return [ClientContext(world, seat, Seeds(1), team) for seat in seats]


def test_scores_do_not_depend_on_the_layout_of_the_parts() -> None:
    stackable = world()
    x = torch.rand(2345, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    parts = sgd.parts_to_score(stackable, x)
    prepared = torch.cat([sgd.scores(stackable, stackable.weights, part) for part in parts])
    assert [len(part) for part in parts] == [1000, 1000, 345] and prepared.layout == torch.strided
    assert torch.allclose(prepared, sgd.scores(stackable, stackable.weights, x), atol=1e-5)
    single = sgd.parts_to_score(replace(stackable, stacked=None), x)
    assert not any(part.is_mkldnn for part in single) and torch.equal(torch.cat(single), x)


@pytest.mark.parametrize(
    "local",
    [Local(2, 8, 0.1), Local(1, 8, 0.1, momentum=0.9, weight_decay=0.01), Local(3, 50, 0.05, momentum=0.5)],
    ids=["plain", "momentum and decay", "one batch"],
)
@pytest.mark.parametrize("extra", ["none", "offset", "pull"])
def test_stacked_and_single_clients_get_the_same_weights(local: Local, extra: str) -> None:
    stacked = replace(world(), local=local)
    start = stacked.weights
    offset = {name: torch.full_like(tensor, 0.01) for name, tensor in start.items()}
    term = {"none": StepChange(), "offset": StepChange(offset=offset), "pull": StepChange(pull=0.7)}[extra]
    with ThreadTeam(2) as team:
        together = sgd.fit(contexts(stacked, team), [start] * len(SIZES), clients(), [term] * len(SIZES))
        unstacked = replace(stacked, stacked=None)
        single = sgd.fit(contexts(unstacked, team), [start] * len(SIZES), clients(), [term] * len(SIZES))
    for first, second in zip(together, single, strict=True):
        assert weights.norm(weights.subtract(first, start)) > 0.01
        for name in start:
            torch.testing.assert_close(first[name], second[name], rtol=1e-4, atol=2e-6)


def test_clients_keep_their_order_and_their_own_data() -> None:
    stacked = world()
    with ThreadTeam(1) as team:
        trained = sgd.fit(contexts(stacked, team), [stacked.weights] * len(SIZES), clients())
        single = sgd.fit(contexts(stacked, team)[3:4], [stacked.weights], clients()[3:4])
    for name in stacked.weights:
        torch.testing.assert_close(trained[3][name], single[0][name], rtol=1e-4, atol=2e-6)
    assert not torch.equal(trained[0]["hidden.weight"], trained[3]["hidden.weight"])


def test_a_gradient_is_that_of_autograd() -> None:
    spec = RunSpec(model={"name": "mlp", "bias": True}, rounds=1)
    world = make_plan(spec).world
    client = clients()[1]
    with ThreadTeam(1) as team:
        context = ClientContext(world, Seat(1, 0, 1, 1, 1, 1), Seeds(0), team)
        gradient = sgd.gradient(context, world.weights, client.x, client.y)
    module = world.build(torch.Generator())
    module.load_state_dict(dict(world.weights))
    functional.cross_entropy(module(client.x), client.y).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(gradient[name], parameter.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", ["mlp", "lenet5", "lenet-sigmoid", {"name": "convnet", "width": 8}])
def test_ghost_clipping_is_the_sum_of_clipped_gradients(model: Any) -> None:
    world = make_plan(RunSpec(model=model, rounds=1)).world
    bound = 0.4
    client = clients()[0]
    ghost, parameters = dp_sgd.loaded_ghost_module(world, world.weights, bound)
    sgd.seed_dropout(ghost, torch.Generator())
    sums = dp_sgd.clipped_sum(ghost, parameters, client.x, client.y)
    module = world.build(torch.Generator())
    module.load_state_dict(dict(world.weights))
    expected = [torch.zeros_like(parameter) for parameter in module.parameters()]
    norms = []
    for x, y in zip(client.x.split(1), client.y.split(1), strict=True):
        gradients = torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))
        norms.append(sum(float(gradient.square().sum()) for gradient in gradients) ** 0.5)
        for total, gradient in zip(expected, gradients, strict=True):
            total += gradient * min(1.0, bound / norms[-1])
    assert max(norms) > bound  # the clip has an effect
    # with wrong norms, the clip would not bound the influence of one picture
    assert ghost.get_norm_sample().tolist() == pytest.approx(norms, rel=1e-4)
    for actual, wanted in zip(sums, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-3, atol=1e-5)


def test_an_empty_batch_has_no_gradient() -> None:
    world = replace(make_plan(RunSpec(rounds=1)).world, local=Local(1, 1, 1.0))
    empty = Client(0, torch.rand(1, 1, 28, 28), torch.zeros(1).long())
    ghost, parameters = dp_sgd.loaded_ghost_module(world, world.weights, 1.0)
    sums = dp_sgd.clipped_sum(ghost, parameters, empty.x[:0], empty.y[:0])
    assert all(not total.any() for total in sums)


def test_the_noise_of_a_private_step_has_the_declared_std() -> None:
    spec = RunSpec(method="dp-fedavg", rounds=1)
    world = replace(make_plan(spec).world, local=Local(1, 20, 1.0), sizes=(20,))
    client = replace(clients()[1], id=0)
    with ThreadTeam(1) as team:
        context = ClientContext(world, Seat(0, 0, 1, 1, 1, 1), Seeds(0), team)
        noisy = dp_sgd.fit_private(context, world.weights, client, bound=0.5, multiplier=3.0)
        exact = dp_sgd.fit_private(context, world.weights, client, bound=0.5, multiplier=0.0)
    difference = torch.cat([(noisy[name] - exact[name]).flatten() for name in noisy])
    assert float(difference.std()) == pytest.approx(3.0 * 0.5 / 20, rel=0.02)
    assert context.used is not None and context.used.tolist() == list(range(20))


def test_a_module_is_rebuilt_for_another_world() -> None:
    first = make_plan(RunSpec(rounds=1)).world
    second = make_plan(RunSpec(rounds=1, seed=9)).world
    for world in (first, second, first):
        module, _ = sgd.loaded_module(world, world.weights)
        assert torch.equal(dict(module.named_parameters())["head.weight"], world.weights["head.weight"])


def gradients_by_vmap(world: World, client: Client, layout: torch.memory_format) -> dict[str, Tensor]:
    """The gradient of each example, (examples, ...), with all examples in one call."""
    module, _ = sgd.loaded_module(world, world.weights, layout)

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        logits = functional_call(module, parameters, (sgd.image_layout(x[None], layout),))
        return functional.cross_entropy(logits, y[None])

    gradients: dict[str, Tensor] = vmap(grad(loss), (None, 0, 0))(dict(world.weights), client.x, client.y)
    return gradients


@pytest.mark.parametrize("model", ["lenet5", "lenet-sigmoid", {"name": "convnet", "width": 8}], ids=str)
def test_the_plain_layout_works_with_vmap_and_gives_the_same_gradients(model: Any) -> None:
    world = make_plan(RunSpec(model=model, dataset="cifar10", rounds=1)).world
    client = clients(world.shape)[3]
    together = gradients_by_vmap(world, client, PLAIN_LAYOUT)
    with ThreadTeam(1) as team:
        context = ClientContext(world, Seat(3, 0, 1, 1, 1, 1), Seeds(0), team)
        for place in range(len(client.y)):
            example = slice(place, place + 1)
            alone = sgd.gradient(context, world.weights, client.x[example], client.y[example])
            for name, tensor in alone.items():
                torch.testing.assert_close(together[name][place], tensor, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="inside vmap"):
        gradients_by_vmap(world, client, FAST_LAYOUT)


def test_each_layout_has_a_module_of_its_own() -> None:
    world = make_plan(RunSpec(model="lenet5", dataset="cifar10", rounds=1)).world
    fast, _ = sgd.loaded_module(world, world.weights)
    plain, _ = sgd.loaded_module(world, world.weights, PLAIN_LAYOUT)
    assert sgd.loaded_module(world, world.weights)[0] is fast is not plain
    pictures = clients(world.shape)[0].x
    for module, layout in ((fast, FAST_LAYOUT), (plain, PLAIN_LAYOUT)):
        assert sgd.image_layout(pictures, layout).is_contiguous(memory_format=layout)
        for name, parameter in module.named_parameters():
            assert torch.equal(parameter, world.weights[name])
            assert parameter.dim() < 4 or parameter.is_contiguous(memory_format=layout)
    assert not next(parameter for parameter in fast.parameters() if parameter.dim() == 4).is_contiguous()


def darker(module: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Inputs moved against the gradient of the loss, as a method that perturbs them does."""
    inputs = x.clone().requires_grad_()
    with torch.enable_grad():
        loss = functional.cross_entropy(module(inputs), y)
    (slope,) = torch.autograd.grad(loss, [inputs])
    return x - 0.1 * slope.sign()


def test_perturbed_inputs_are_those_of_each_batch() -> None:
    """With one batch of all data, one step is the gradient at the perturbed inputs, with and without DP-SGD."""
    client = Client(0, torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(2)), torch.arange(20) % 10)
    spec = RunSpec(model={"name": "mlp", "hidden": 12, "bias": True}, rounds=1)
    plain = replace(make_plan(spec).world, stacked=None, local=Local(1, 50, 0.1), sizes=(20,) * len(SIZES))
    network = plain.build(torch.Generator())
    for name, parameter in network.named_parameters():
        parameter.data.copy_(plain.weights[name])
    loss = functional.cross_entropy(network(darker(network, client.x, client.y)), client.y)
    slopes = dict(zip(plain.weights, torch.autograd.grad(loss, list(network.parameters())), strict=True))
    change = StepChange(perturb=darker)
    with ThreadTeam(1) as team:
        context = contexts(plain, team)[0]
        trained = sgd.fit([context], [plain.weights], [client], [change])[0]
        private = dp_sgd.fit_private(context, plain.weights, client, bound=1e3, multiplier=0.0, extra=change)
        untouched = sgd.fit([context], [plain.weights], [client])[0]
    for name, slope in slopes.items():
        torch.testing.assert_close(trained[name], plain.weights[name] - 0.1 * slope, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(private[name], plain.weights[name] - 0.1 * slope, rtol=1e-3, atol=1e-5)
        assert not torch.allclose(untouched[name], trained[name], atol=1e-6)


def test_a_stack_falls_back_to_single_clients_where_inputs_are_perturbed() -> None:
    stacked = world()
    changes = [StepChange(perturb=darker)] * len(SIZES)
    with ThreadTeam(2) as team:
        together = sgd.fit(contexts(stacked, team), [stacked.weights] * len(SIZES), clients(), changes)
        apart = sgd.fit(
            contexts(replace(stacked, stacked=None), team), [stacked.weights] * len(SIZES), clients(), changes
        )
    for first, second in zip(together, apart, strict=True):
        assert all(torch.equal(first[name], second[name]) for name in stacked.weights)


def test_a_clipped_mean_is_the_mean_of_clipped_gradients() -> None:
    plan_world = world()
    client = clients()[1]
    with ThreadTeam(1) as team:
        context = contexts(plan_world, team)[1]
        mean = dp_sgd.clipped_mean(context, plan_world.weights, client.x, client.y, 0.5)
        wide = dp_sgd.clipped_mean(context, plan_world.weights, client.x, client.y, 1e6)
        empty = dp_sgd.clipped_mean(context, plan_world.weights, client.x[:0], client.y[:0], 0.5)
    assert weights.norm(mean) <= 0.5 < weights.norm(wide)
    assert not any(tensor.any() for tensor in empty.values()) and empty.keys() == mean.keys()


def test_a_method_may_ask_for_the_loss_of_each_step() -> None:
    stacked = world()
    with ThreadTeam(1) as team:
        asking = [replace(context, losses=[]) for context in contexts(stacked, team)]
        sgd.fit(asking, [stacked.weights] * len(SIZES), clients())
        silent = contexts(stacked, team)
        sgd.fit(silent, [stacked.weights] * len(SIZES), clients())
    assert all(context.losses is None for context in silent)
    steps = [len(context.losses or ()) for context in asking]
    assert steps == [2 * -(-size // 8) for size in SIZES]
    assert all(1.5 < loss < 4 for context in asking for loss in context.losses or ())
