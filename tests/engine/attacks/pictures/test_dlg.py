"""DLG: pictures and labels, optimised together by L-BFGS."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.attacks import ATTACKS
from engine.records import Guess
from tests.engine.attacks.pictures.makers import UNIFORM, InversionScene, inversion_scene, psnr, small_plan

pytestmark = pytest.mark.slow


def attacked(
    model: Any, dataset: str = "fashion-mnist", seed: int = 0, **fields: Any
) -> tuple[InversionScene, list[Guess]]:
    scene = inversion_scene(ATTACKS.make({"name": "dlg", **fields}), plan=small_plan("fedsgd", model, dataset))
    return scene, list(scene.guesses(seed))


@pytest.mark.parametrize("model", [UNIFORM, "lenet-sigmoid"], ids=["uniform", "default"])
def test_a_picture_and_its_label_are_reconstructed(model: Any) -> None:
    scene, guesses = attacked(model, iterations=12)
    assert psnr(guesses[-1].pictures, scene.x) > 40
    assert guesses[-1].labels.tolist() == scene.y.tolist()


def test_every_guess_explains_more_than_the_one_before() -> None:
    _, guesses = attacked(UNIFORM, iterations=12)
    losses = [guess.loss for guess in guesses]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1e-4 * losses[1]


def test_it_ends_when_almost_nothing_is_unexplained() -> None:
    _, guesses = attacked("lenet-sigmoid", tolerance=1e-6)
    assert guesses[-1].loss <= 1e-6 and guesses[-1].iteration == guesses[-1].of < 300


def test_without_gain_it_fails_on_default_initial_weights() -> None:
    """L-BFGS loses its way where the distance is small; with gain, the same steps find the picture."""
    settings = {"iterations": 12, "search": False}
    scene, small_gain = attacked("lenet-sigmoid", "cifar10", gain=0.01, **settings)
    _, large_gain = attacked("lenet-sigmoid", "cifar10", gain=1e5, **settings)
    assert psnr(small_gain[-1].pictures, scene.x) < 15 < 25 < psnr(large_gain[-1].pictures, scene.x)


def test_a_line_search_prevents_divergence() -> None:
    _, without = attacked(UNIFORM, iterations=10, lr=10.0, search=False)
    _, searched = attacked(UNIFORM, iterations=10, lr=10.0, search=True)
    assert math.isinf(without[-1].loss) or without[-1].loss > 100 * searched[-1].loss
