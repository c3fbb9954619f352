"""The classes behind an upload, also where entries of the last layer are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from engine.attacks.pictures.labels import labels_by_objective
from engine.attacks.pictures.problem import InversionProblem
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam
from engine.leakage.probe import make_victim, probe
from engine.records import Exposure
from engine.seeds import Seeds
from tests.engine.attacks.pictures.makers import quick, small_plan

MLP = {"name": "mlp", "hidden": 16, "bias": True}


def exposure_of(many: int = 1, first: int = 0) -> tuple[Exposure, Tensor, Tensor]:
    plan = small_plan("fedsgd", MLP)
    data = plan.spec.dataset.load()
    x = data.test_x[first : first + many]
    y = data.test_y[first : first + many]
    with ThreadTeam(1) as team:
        return probe(plan, [], make_victim(plan, 1, x, y), "server", team), x, y


def masked(exposure: Exposure, kept: dict[str, Tensor], mask: Literal["zeros", "clear"] = "zeros") -> Exposure:
    """The same upload with zeros where `kept` is 0."""
    model = {name: tensor * kept.get(name, 1) for name, tensor in exposure.upload.model.items()}
    upload = replace(exposure.upload, model=model)
    return replace(exposure, upload=upload, protocol=replace(exposure.protocol, mask=mask))


def problem_of(exposure: Exposure) -> InversionProblem:
    return InversionProblem.of(exposure, small_plan("fedsgd", MLP).world.build(torch.Generator()))


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
def test_without_the_row_of_its_class_the_label_is_found(place: int) -> None:
    exposure, _, y = exposure_of(1, place)
    rows = torch.ones(10)
    rows[y] = 0  # the entries that would name the class
    kept = {"head.weight": rows[:, None], "head.bias": rows}
    problem = problem_of(masked(exposure, kept))
    assert problem.labels.tolist() == labels_by_objective(problem).tolist() == y.tolist()


@pytest.mark.slow
def test_both_ways_agree_without_a_mask() -> None:
    for many in (1, 3):
        exposure, _, y = exposure_of(many)
        problem = problem_of(exposure)
        assert problem.labels.tolist() == sorted(y.tolist())
    assert labels_by_objective(problem_of(exposure_of(1)[0])).tolist() == exposure_of(1)[2].tolist()


def test_only_zeros_are_left_out() -> None:
    exposure, _, _ = exposure_of()
    kept = {"hidden.weight": (torch.arange(16 * 784).view(16, 784) % 2).float()}
    assert problem_of(masked(exposure, kept)).masks and not problem_of(masked(exposure, kept, "clear")).masks


def test_noise_on_a_share_of_the_coordinates_is_a_share_of_the_floor() -> None:
    exposure, _, _ = exposure_of()
    floors = []
    for share in (1.0, 0.25):
        protocol = replace(exposure.protocol, std=1e-3, share=share)
        floors.append(problem_of(replace(exposure, protocol=protocol)).floor)
    assert floors[1] == pytest.approx(floors[0] / 4)


@pytest.mark.slow
@pytest.mark.parametrize("many", [1, 3])
def test_a16_a_bias_that_was_masked_away_gives_a_guess(many: int) -> None:
    exposure, _, _ = exposure_of(many)
    without = masked(exposure, {"hidden.bias": torch.zeros(16)})
    module = small_plan("fedsgd", MLP).world.build(torch.Generator())
    (guess,) = quick("analytic").reconstruct(without, module, None, AttackContext(Seeds(0)))
    assert guess.pictures.shape == (many, 1, 28, 28) and bool(guess.pictures.isfinite().all())
