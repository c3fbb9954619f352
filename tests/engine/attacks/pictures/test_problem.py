"""The inverse problem: an attacker's path from pictures to an upload gives the same numbers as the client's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import shown_iterations
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import make_victim, probe
from engine.specs.run import RunSpec
from engine.training.plan import load_plan

SMALL: dict[str, Any] = {"dataset": "fashion-mnist", "clients": 6, "sampled": 3, "epochs": 1, "rounds": 2}
MLP = {"name": "mlp", "hidden": 12, "bias": True}
MLP_WITHOUT_BIAS = {"name": "mlp", "hidden": 12}
NO_NOISE = {"noise": 0.0}


def inversion_problem(
    places: tuple[int, ...] = (0,), view: Any = "server", **fields: Any
) -> tuple[InversionProblem, Tensor, Tensor]:
    plan = load_plan(RunSpec(**{**SMALL, "model": MLP, "method": "fedsgd", **fields}))
    data = plan.spec.dataset.load()
    x = data.test_x[list(places)]
    y = data.test_y[list(places)]
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], make_victim(plan, 1, x, y), view, team)
    return InversionProblem.of(exposure, plan.world.build(torch.Generator())), x, y


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"method": "fedavg"},
        {"method": "fedavg", "epochs": 3},
        {"method": "fedavg", "epochs": 3, "momentum": 0.9, "weight_decay": 0.01},
        {"method": "fedavg", "weight_decay": 0.01},
        {"method": {"name": "udp-fedavg", "clip": 0.1, "noise-split": "full-local", **NO_NOISE}},
        {"method": {"name": "udp-fedavg", "clip": 100.0, "noise-split": "full-local", **NO_NOISE}, "epochs": 2},
        {"method": {"name": "dp-fedavg", "clip": 0.3, **NO_NOISE}},
        {"method": {"name": "dp-fedavg", "clip": 0.3, **NO_NOISE}, "epochs": 2},
        {"model": "lenet-sigmoid"},
        {"model": "lenet5", "method": "fedavg", "epochs": 2},
        {"model": {"name": "convnet", "width": 4}},
    ],
    ids=str,
)
@pytest.mark.parametrize("places", [(0,), (0, 3)])
def test_the_true_pictures_explain_the_whole_upload(fields: dict[str, Any], places: tuple[int, ...]) -> None:
    problem, x, y = inversion_problem(places, **fields)
    assert not problem.direction_only
    assert problem.unexplained(x, y) < 1e-6
    assert problem.unexplained(torch.full_like(x, 0.5), y) > 1e-6


@pytest.mark.parametrize("model", [MLP, MLP_WITHOUT_BIAS, "lenet-sigmoid"], ids=str)
@pytest.mark.parametrize("method", ["fedsgd", "fedavg", {"name": "udp-fedavg", **NO_NOISE}], ids=str)
def test_the_angle_needs_no_gradients_of_linear_layers(model: Any, method: Any) -> None:
    problem, x, y = inversion_problem((0, 3), model=model, method=method)
    guess = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
    quick = problem.picture_angle(guess, y)
    whole = problem.cosine_distance(problem.upload(guess, y))
    assert float(quick.detach()) == pytest.approx(float(whole.detach()), abs=3e-6)
    quick_gradient = torch.autograd.grad(quick, guess)[0]
    whole_gradient = torch.autograd.grad(whole, guess)[0]
    assert float((quick_gradient - whole_gradient).norm()) < 1e-3 * float(whole_gradient.norm())


@pytest.mark.parametrize("model", [MLP, MLP_WITHOUT_BIAS, "lenet-sigmoid", "lenet5"], ids=str)
@pytest.mark.parametrize("fields", [{}, {"method": "fedavg"}, {"method": "fedavg", "epochs": 3}], ids=str)
def test_the_label_of_one_picture_is_read_off_the_last_layer(model: Any, fields: dict[str, Any]) -> None:
    for place in range(6):
        problem, _, y = inversion_problem((place,), model=model, **fields)
        assert problem.labels.tolist() == y.tolist()


def test_the_labels_of_several_pictures_are_counted() -> None:
    right = 0
    for start in range(0, 24, 4):
        problem, _, y = inversion_problem(tuple(range(start, start + 4)))
        right += problem.labels.tolist() == sorted(y.tolist())
    assert right >= 5


@pytest.mark.parametrize("view", ["aggregate", "outsider", "client"])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_only_the_direction_of_several_uploads_in_one_counts(view: str, method: str) -> None:
    problem, x, y = inversion_problem((0,), view=view, method=method, clients=3, sampled=3, sampling="all")
    assert problem.direction_only
    unexplained = problem.unexplained(x, y)
    assert 0 < unexplained < problem.unexplained(1 - x, y)  # the victim's part is there, with the right sign


def test_second_derivatives_use_the_plain_memory_layout() -> None:
    problem, x, y = inversion_problem(model="lenet5", dataset="cifar10")
    outputs: list[Tensor] = []
    for layer in problem.module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda _, inputs, output: outputs.append(output))
    problem.distance(problem.upload(x, y))
    assert outputs and all(output.is_contiguous() for output in outputs)


def test_long_training_is_not_unrolled() -> None:
    assert inversion_problem((0,), method="fedavg", epochs=11)[0].direction_only
    assert not inversion_problem((0,), method="fedavg", epochs=10)[0].direction_only


def test_the_floor_is_the_share_of_the_noise() -> None:
    problem, x, y = inversion_problem((0,), method={"name": "udp-fedavg", "noise": 0.01, "noise-split": "full-local"})
    assert problem.unexplained(x, y) == pytest.approx(problem.floor, rel=0.05)
    assert not problem.residual_scale.hides_pictures
    loud, x, y = inversion_problem((0,), method={"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"})
    assert loud.residual_scale.hides_pictures and loud.floor > 0.95


def test_shown_iterations_begin_close_together_and_reach_the_end() -> None:
    for iterations in (1, 7, 60, 1600):
        shown = sorted(shown_iterations(iterations))
        assert shown[0] == 1 and shown[-1] == iterations and len(shown) <= 41
    assert len(shown_iterations(1600)) > 35


def test_total_variation_is_the_mean_step_to_the_neighbours() -> None:
    steps = torch.arange(4.0).view(1, 1, 1, 4).expand(1, 1, 4, 4)
    assert float(total_variation(steps)) == 1.0 and float(total_variation(torch.ones(1, 1, 4, 4))) == 0.0


def test_a14_an_outsider_of_a_round_with_one_client_knows_the_length_of_its_upload() -> None:
    problem, x, y = inversion_problem(view="outsider", method="fedavg", sampled=1)
    assert not problem.direction_only and problem.unexplained(x, y) < 1e-6
    crowd, _, _ = inversion_problem(view="outsider", method="fedavg")
    assert crowd.direction_only
