"""Candidates that hold on to one another, and are shaken."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.attacks.pictures.gradinversion import WARM_UP, Gradinversion, pace
from engine.attacks.pictures.problem import InversionProblem, roughness
from tests.engine.attacks.pictures.makers import UNIFORM, InversionScene, bare, inversion_scene, psnr

PLAIN: dict[str, Any] = {"smoothness": 0.0, "shrinking": 0.0, "agreement": 0.0}


def attacked(**fields: Any) -> InversionScene:
    return inversion_scene(Gradinversion(**fields), there=bare("fedsgd", UNIFORM))


def test_a_picture_comes_back() -> None:
    there = attacked(iterations=150)
    assert psnr(list(there.guesses())[-1].pictures, there.x) > 16


def test_steps_warm_up_and_then_shrink() -> None:
    sizes = [pace(iteration, 400) for iteration in range(1, 401)]
    assert sizes[:WARM_UP] == sorted(sizes[:WARM_UP]) and max(sizes) == 1 == sizes[WARM_UP]
    assert sizes[WARM_UP:] == sorted(sizes[WARM_UP:], reverse=True) and 0 < sizes[-1] < 1e-3
    assert pace((400 + WARM_UP) // 2 + 1, 400) == pytest.approx(0.5, abs=0.01)
    assert pace(1, 1) == 1


def test_each_wish_has_its_formula() -> None:
    """What a weight adds to the slopes is the gradient of the term it belongs to."""
    there = attacked()
    problem = InversionProblem.of(there.exposure, there.module())
    pool = 0.2 + 0.6 * torch.rand(3, 1, *problem.shape, generator=torch.Generator().manual_seed(1))
    mean = pool.mean(0)
    terms = {
        "smoothness": roughness,
        "shrinking": lambda one: problem.normal(one).square().mean(),
        "agreement": lambda one: ((one - mean) / problem.scale).square().mean(),
    }
    _, bare_ = Gradinversion(**PLAIN).slopes(problem, pool)
    for name, term in terms.items():
        _, slopes = Gradinversion(**{**PLAIN, name: 2.0}).slopes(problem, pool)
        assert torch.allclose(slopes - bare_, 2 * torch.stack([slope(term, one) for one in pool]), atol=1e-6)


def slope(term: Any, one: Tensor) -> Tensor:
    one = one.clone().requires_grad_()
    found: Tensor = torch.autograd.grad(term(one), one)[0]
    return found


def test_one_candidate_agrees_with_itself() -> None:
    alone, drawn = (list(attacked(iterations=5, candidates=1, agreement=weight).guesses())[-1] for weight in (0.0, 9.0))
    assert torch.equal(alone.pictures, drawn.pictures)


def test_it_is_shaken_only_where_it_is_asked_to_be() -> None:
    def pixels(noise: float, seed: int) -> Tensor:
        same = torch.full((1, 1, 28, 28), 0.5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("engine.attacks.pictures.gradinversion.grey_noise", lambda *_: same.clone())
            return list(attacked(iterations=3, noise=noise).guesses(seed))[-1].pictures

    assert torch.equal(pixels(0.0, 1), pixels(0.0, 2))
    assert not torch.equal(pixels(0.05, 1), pixels(0.05, 2))


def test_the_candidate_with_the_lowest_loss_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def slopes(self: Gradinversion, problem: InversionProblem, pool: Tensor) -> tuple[list[float], Tensor]:
        return [3.0, 1.0, 2.0], torch.stack([torch.ones_like(pool[0]), -torch.ones_like(pool[1]), 0 * pool[2]])

    monkeypatch.setattr(Gradinversion, "slopes", slopes)
    first, *rest = attacked(iterations=40, candidates=3, noise=0.0).guesses()
    assert math.isinf(first.loss) and {guess.loss for guess in rest} == {1.0}
    assert float(rest[-1].pictures.min()) == 1  # the second one alone was sent towards white
