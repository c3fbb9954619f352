"""GradInversion: candidates that are pulled to their mean and disturbed by noise."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.attacks.pictures.gradinversion import WARM_UP, Gradinversion, warm_up_decay
from engine.attacks.pictures.problem import InversionProblem, total_variation
from tests.engine.attacks.pictures.makers import UNIFORM, InversionScene, inversion_scene, psnr, small_plan

NO_TERMS: dict[str, Any] = {"smoothness": 0.0, "shrinking": 0.0, "agreement": 0.0}


def scene_of(**fields: Any) -> InversionScene:
    return inversion_scene(Gradinversion(**fields), plan=small_plan("fedsgd", UNIFORM))


def last_pictures(seed: int = 0, **fields: Any) -> Tensor:
    return list(scene_of(**fields).guesses(seed))[-1].pictures


@pytest.mark.slow
def test_a_picture_is_reconstructed() -> None:
    scene = scene_of(iterations=150)
    assert psnr(list(scene.guesses())[-1].pictures, scene.x) > 16


def test_steps_warm_up_and_then_shrink() -> None:
    sizes = [warm_up_decay(iteration, 400) for iteration in range(1, 401)]
    assert sizes[:WARM_UP] == sorted(sizes[:WARM_UP]) and max(sizes) == 1 == sizes[WARM_UP]
    assert sizes[WARM_UP:] == sorted(sizes[WARM_UP:], reverse=True) and 0 < sizes[-1] < 1e-3
    assert warm_up_decay((400 + WARM_UP) // 2 + 1, 400) == pytest.approx(0.5, abs=0.01)
    assert warm_up_decay(1, 1) == 1


def test_each_term_has_its_formula() -> None:
    """A weight adds the gradient of its term to the gradients."""
    scene = scene_of()
    problem = InversionProblem.of(scene.exposure, scene.module())
    pool = 0.2 + 0.6 * torch.rand(3, 1, *problem.shape, generator=torch.Generator().manual_seed(1))
    mean = pool.mean(0)
    terms = {
        "smoothness": total_variation,
        "shrinking": lambda pictures: problem.normalised(pictures).square().mean(),
        "agreement": lambda pictures: ((pictures - mean) / problem.scale).square().mean(),
    }
    _, base = Gradinversion(**NO_TERMS).gradients(problem, pool)
    for name, term in terms.items():
        _, gradients = Gradinversion(**{**NO_TERMS, name: 2.0}).gradients(problem, pool)
        expected = 2 * torch.stack([gradient_of(term, candidate) for candidate in pool])
        assert torch.allclose(gradients - base, expected, atol=1e-6)


def gradient_of(term: Any, pictures: Tensor) -> Tensor:
    pictures = pictures.clone().requires_grad_()
    gradient: Tensor = torch.autograd.grad(term(pictures), pictures)[0]
    return gradient


@pytest.mark.slow
def test_one_candidate_agrees_with_itself() -> None:
    without = last_pictures(iterations=5, candidates=1, agreement=0.0)
    strong = last_pictures(iterations=5, candidates=1, agreement=9.0)
    assert torch.equal(without, strong)


def test_seeds_matter_only_with_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    start = torch.full((1, 1, 28, 28), 0.5)
    monkeypatch.setattr("engine.attacks.pictures.gradinversion.grey_noise", lambda *_: start.clone())
    assert torch.equal(last_pictures(1, iterations=3, noise=0.0), last_pictures(2, iterations=3, noise=0.0))
    assert not torch.equal(last_pictures(1, iterations=3, noise=0.05), last_pictures(2, iterations=3, noise=0.05))


def test_the_candidate_with_the_lowest_loss_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradients(self: Gradinversion, problem: InversionProblem, pool: Tensor) -> tuple[list[float], Tensor]:
        return [3.0, 1.0, 2.0], torch.stack([torch.ones_like(pool[0]), -torch.ones_like(pool[1]), 0 * pool[2]])

    monkeypatch.setattr(Gradinversion, "gradients", gradients)
    first, *rest = scene_of(iterations=40, candidates=3, noise=0.0).guesses()
    assert math.isinf(first.loss) and {guess.loss for guess in rest} == {1.0}
    assert float(rest[-1].pictures.min()) == 1  # only the second candidate moves towards white
