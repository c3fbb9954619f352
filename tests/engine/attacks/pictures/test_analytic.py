"""What the gradient of a linear first layer tells."""

from __future__ import annotations

import torch

from engine.attacks.pictures.analytic import by_bias, by_direction
from engine.attacks.pictures.problem import InversionProblem, in_order
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import probe, victim
from engine.specs.run import RunSpec
from engine.training.plan import load_plan


def problem(places: tuple[int, ...], bias: bool) -> tuple[InversionProblem, torch.Tensor, torch.Tensor]:
    spec = RunSpec(method="fedsgd", model={"name": "mlp", "bias": bias, "hidden": 32}, clients=10, sampled=5, rounds=1)
    plan = load_plan(spec)
    data = spec.dataset.load()
    x, y = data.test_x[list(places)], data.test_y[list(places)]
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], victim(plan, 1, x, y), "server", team)
    return InversionProblem.of(exposure, plan.world.build(torch.Generator())), x, y


def test_each_row_over_its_bias_is_the_input() -> None:
    found, x, _ = problem((3,), bias=True)
    inputs = by_bias(found.goal["hidden.weight"], found.goal["hidden.bias"], found)
    assert torch.allclose(inputs.view_as(x), found.normal(x), atol=1e-4)


def test_without_a_bias_length_and_sign_are_found_as_well() -> None:
    found, x, _ = problem((3,), bias=False)
    inputs = by_direction(found.goal["hidden.weight"], found)
    assert torch.allclose(inputs.view_as(x), found.normal(x), atol=1e-2)


def test_labels_find_their_pictures() -> None:
    found, x, y = problem((0, 1, 2), bias=True)
    assert found.labels.tolist() != y.tolist()  # they come sorted
    assert in_order(x, found).tolist() == y.tolist()


def test_an_upload_of_nothing_is_survived() -> None:
    found, _, _ = problem((0,), bias=True)
    nothing = by_bias(torch.zeros(4, 784), torch.zeros(4), found)
    assert nothing.shape == (1, 784) and bool(nothing.isfinite().all())
