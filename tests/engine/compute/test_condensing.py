"""Matching gradients: the parts of a large set of pictures give the same step as all of them in one graph."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from engine.compute.condensing import GRAPH, GradientDistance, MovingPictures, PlainModel, matching_gradient
from engine.records import Samples, World
from engine.training.plan import make_plan
from tests.engine.makers import tiny_spec


@pytest.fixture(scope="module")
def world() -> World:
    return make_plan(tiny_spec(model={"name": "mlp", "hidden": 8})).world


def model_of(world: World) -> PlainModel:
    return PlainModel.of(world, world.weights, torch.Generator())


def pictures(world: World, count: int) -> Samples:
    rng = torch.Generator().manual_seed(5)
    return Samples(torch.randn((count, *world.shape), generator=rng), torch.arange(count) % world.classes)


@pytest.mark.parametrize(
    "matching",
    [GradientDistance(), GradientDistance(rows="sum", square=0.5), GradientDistance(cosine=False, square=1.0)],
)
@pytest.mark.parametrize("count", [GRAPH - 1, GRAPH + 21])
def test_the_parts_give_the_gradient_of_one_graph(world: World, matching: GradientDistance, count: int) -> None:
    model = model_of(world)
    made = pictures(world, count)
    target = model.gradient(*vars(pictures(world, 7)).values())
    whole = made.x.clone().requires_grad_()
    loss = functional.cross_entropy(model.module(whole), made.y)
    gradient = torch.autograd.grad(loss, model.parameters, create_graph=True)
    direct = torch.autograd.grad(matching.distance(gradient, target), whole)[0]
    by_parts = matching_gradient(model, made, target, matching)
    torch.testing.assert_close(by_parts, direct, rtol=1e-4, atol=1e-7)


def test_the_distance_is_that_of_the_paper() -> None:
    """Two outputs at a right angle and at 45 degrees, and a bias in the opposite direction."""
    layer = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    other = torch.tensor([[0.0, 3.0], [1.0, 1.0]])
    bias, opposite = torch.tensor([1.0, 0.0]), torch.tensor([-2.0, 0.0])
    rows = (1 - 0.0) + (1 - math.sqrt(0.5))
    whole = GradientDistance(rows="sum").distance([layer, bias], [other, opposite])
    assert float(whole) == pytest.approx(rows + 2, abs=1e-5)
    mean = GradientDistance().distance([layer, bias], [other, opposite])
    assert float(mean) == pytest.approx(rows / 2 + 2, abs=1e-5)
    squares = 1 + 9 + 1 + 1 + 9
    both = GradientDistance(rows="sum", square=0.1).distance([layer, bias], [other, opposite])
    assert float(both) == pytest.approx(rows + 2 + 0.1 * squares, abs=1e-5)


def test_weighted_losses_are_summed(world: World) -> None:
    model = model_of(world)
    made = pictures(world, 250)  # more than one part
    shares = torch.rand(250, generator=torch.Generator().manual_seed(1))
    gradient = model.gradient(made.x, made.y, shares)
    losses = functional.cross_entropy(model.module(made.x), made.y, reduction="none")
    direct = torch.autograd.grad((losses * shares).sum(), model.parameters)
    for mine, theirs in zip(gradient, direct, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_pictures_move_with_momentum() -> None:
    moving = MovingPictures(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))
    for _ in range(2):
        moving.move(torch.ones(1, 1), lr=2.0)
    assert moving.x.item() == -2.0 * (1 + 1.5)
