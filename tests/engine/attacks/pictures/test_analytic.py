"""Reading pictures off the gradient of a linear first layer."""

from __future__ import annotations

import torch

from engine.attacks.pictures.analytic import FirstLayer, by_bias, by_direction
from engine.attacks.pictures.labels import labels_in_order
from engine.attacks.pictures.problem import InversionProblem
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import make_victim, probe
from engine.records import Guess
from engine.specs.run import RunSpec
from engine.training.plan import load_plan


def inversion_problem(places: tuple[int, ...], bias: bool) -> tuple[InversionProblem, torch.Tensor, torch.Tensor]:
    spec = RunSpec(method="fedsgd", model={"name": "mlp", "bias": bias, "hidden": 32}, clients=10, sampled=5, rounds=1)
    plan = load_plan(spec)
    data = spec.dataset.load()
    x = data.test_x[list(places)]
    y = data.test_y[list(places)]
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, x, y), "server", team)
    return InversionProblem.of(exposure, plan.world.build(torch.Generator())), x, y


def test_each_row_over_its_bias_is_the_input() -> None:
    problem, x, _ = inversion_problem((3,), bias=True)
    inputs = by_bias(problem.target["hidden.weight"], problem.target["hidden.bias"], problem)
    assert torch.allclose(inputs.view_as(x), problem.normalised(x), atol=1e-4)


def test_without_a_bias_length_and_sign_are_found_as_well() -> None:
    problem, x, _ = inversion_problem((3,), bias=False)
    inputs = by_direction(problem.target["hidden.weight"], problem)
    assert torch.allclose(inputs.view_as(x), problem.normalised(x), atol=1e-2)


def test_labels_are_assigned_to_their_pictures() -> None:
    problem, x, y = inversion_problem((0, 1, 2), bias=True)
    assert problem.labels.tolist() != y.tolist()  # they are sorted
    assert labels_in_order(x, problem).tolist() == y.tolist()


def test_an_upload_of_zeros_gives_finite_inputs() -> None:
    problem, _, _ = inversion_problem((0,), bias=True)
    inputs = by_bias(torch.zeros(4, 784), torch.zeros(4), problem)
    assert inputs.shape == (1, 784) and bool(inputs.isfinite().all())


def first_layer(places: tuple[int, ...]) -> tuple[FirstLayer, torch.Tensor, torch.Tensor]:
    problem, x, y = inversion_problem(places, bias=True)
    return FirstLayer(problem, problem.target["hidden.weight"], problem.target["hidden.bias"]), x, y


def left(guess: Guess) -> float:
    return guess.residual_scale.left(guess.unexplained)


def test_a01_the_rows_of_the_first_layer_judge_a_guess() -> None:
    """A simulated upload differs from one with dropout or several steps. The rows are sums of the pictures in both."""
    layer, x, y = first_layer((3,))
    assert left(layer.guess(x, y)) < 1e-9
    assert left(layer.guess((0.7 * x + 0.3 * x.flip(3)).clamp(0, 1), y)) > 0.01
    dropped = FirstLayer(layer.problem, layer.weight * 2.0, layer.bias * 2.0)  # of any length
    dropped.weight[::2] = 0
    dropped.bias[::2] = 0
    assert left(dropped.guess(x, y)) < 1e-9


def test_a01_a_mixture_of_pictures_explains_its_own_row_only() -> None:
    layer, x, y = first_layer((0, 1))
    shown = layer.guess(x, y)
    mixtures = torch.stack([0.5 * x[0] + 0.5 * x[1], 0.3 * x[0] + 0.7 * x[1]])
    assert left(layer.guess(mixtures, y)) > max(0.3, left(shown))
