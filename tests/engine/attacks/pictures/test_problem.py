"""The path from pictures to an upload, as an attacker walks it: the same numbers as the client's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.attacks.pictures.problem import InversionProblem, moments, roughness
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import probe, victim
from engine.records import Exposure
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan

SMALL: dict[str, Any] = {"dataset": "fashion-mnist", "clients": 6, "sampled": 3, "epochs": 1, "rounds": 2}
MLP = {"name": "mlp", "hidden": 12, "bias": True}
BARE = {"name": "mlp", "hidden": 12}


def exposed(
    places: tuple[int, ...] = (0,), view: Any = "server", **asked: Any
) -> tuple[InversionProblem, Tensor, Tensor]:
    plan = load_plan(RunSpec(**{**SMALL, "model": MLP, "method": "fedsgd", **asked}))
    data = plan.spec.dataset.load()
    x, y = data.test_x[list(places)], data.test_y[list(places)]
    with ThreadTeam(1) as team:
        exposure = probe(plan, [], victim(plan, 1, x, y), view, team)
    return riddle_of(exposure, plan), x, y


def riddle_of(exposure: Exposure, plan: LoadedPlan) -> InversionProblem:
    return InversionProblem.of(exposure, plan.world.build(torch.Generator()))


QUIET = {"noise": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"method": "fedavg"},
        {"method": "fedavg", "epochs": 3},
        {"method": "fedavg", "epochs": 3, "momentum": 0.9, "weight_decay": 0.01},
        {"method": "fedavg", "weight_decay": 0.01},
        {"method": {"name": "udp-fedavg", "clip": 0.1, "noise-split": "full-local", **QUIET}},
        {"method": {"name": "udp-fedavg", "clip": 100.0, "noise-split": "full-local", **QUIET}, "epochs": 2},
        {"method": {"name": "dp-fedavg", "clip": 0.3, **QUIET}},
        {"method": {"name": "dp-fedavg", "clip": 0.3, **QUIET}, "epochs": 2},
        {"model": "lenet-sigmoid"},
        {"model": "lenet5", "method": "fedavg", "epochs": 2},
        {"model": {"name": "convnet", "width": 4}},
    ],
    ids=str,
)
@pytest.mark.parametrize("places", [(0,), (0, 3)])
def test_the_true_pictures_explain_the_whole_upload(asked: dict[str, Any], places: tuple[int, ...]) -> None:
    problem, x, y = exposed(places, **asked)
    assert not problem.free
    assert problem.unexplained(x, y) < 1e-6
    assert problem.unexplained(torch.full_like(x, 0.5), y) > 1e-6


@pytest.mark.parametrize("model", [MLP, BARE, "lenet-sigmoid"], ids=str)
@pytest.mark.parametrize("method", ["fedsgd", "fedavg", {"name": "udp-fedavg", **QUIET}], ids=str)
def test_the_angle_needs_no_gradients_of_linear_layers(model: Any, method: Any) -> None:
    problem, x, y = exposed((0, 3), model=model, method=method)
    guess = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
    lean, whole = problem.angle(guess, y), problem.turned(problem.upload(guess, y))
    assert float(lean.detach()) == pytest.approx(float(whole.detach()), abs=3e-6)
    ours, theirs = (torch.autograd.grad(one, guess)[0] for one in (lean, whole))
    assert float((ours - theirs).norm()) < 1e-3 * float(theirs.norm())


@pytest.mark.parametrize("model", [MLP, BARE, "lenet-sigmoid", "lenet5"], ids=str)
@pytest.mark.parametrize("asked", [{}, {"method": "fedavg"}, {"method": "fedavg", "epochs": 3}], ids=str)
def test_the_label_of_one_picture_is_read_off_the_last_layer(model: Any, asked: dict[str, Any]) -> None:
    for place in range(6):
        problem, _, y = exposed((place,), model=model, **asked)
        assert problem.labels.tolist() == y.tolist()


def test_the_labels_of_several_pictures_are_counted() -> None:
    right = 0
    for start in range(0, 24, 4):
        problem, _, y = exposed(tuple(range(start, start + 4)))
        right += problem.labels.tolist() == sorted(y.tolist())
    assert right >= 5


@pytest.mark.parametrize("view", ["aggregate", "outsider", "client"])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_where_several_uploads_are_in_one_only_the_direction_counts(view: str, method: str) -> None:
    problem, x, y = exposed((0,), view=view, method=method, clients=3, sampled=3, sampling="all")
    assert problem.free
    share = problem.unexplained(x, y)
    assert 0 < share < problem.unexplained(1 - x, y)  # the victim's own part is in there, in the right sign


def test_long_training_is_not_played_through() -> None:
    assert exposed((0,), method="fedavg", epochs=11)[0].free
    assert not exposed((0,), method="fedavg", epochs=10)[0].free


def test_the_floor_is_the_share_of_the_noise() -> None:
    problem, x, y = exposed((0,), method={"name": "udp-fedavg", "noise": 0.01, "noise-split": "full-local"})
    assert problem.unexplained(x, y) == pytest.approx(problem.floor, rel=0.05)
    assert not problem.residual_scale.drowned
    loud, x, y = exposed((0,), method={"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"})
    assert loud.residual_scale.drowned and loud.floor > 0.95


def test_moments_begin_close_together_and_reach_the_end() -> None:
    for many in (1, 7, 60, 1600):
        shown = sorted(moments(many))
        assert shown[0] == 1 and shown[-1] == many and len(shown) <= 41
    assert len(moments(1600)) > 35


def test_roughness_is_the_mean_step_to_the_neighbours() -> None:
    steps = torch.arange(4.0).view(1, 1, 1, 4).expand(1, 1, 4, 4)
    assert float(roughness(steps)) == 1.0 and float(roughness(torch.ones(1, 1, 4, 4))) == 0.0
