"""Pictures and labels, found together by curvature."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.attacks import ATTACKS
from engine.records import Guess
from tests.engine.attacks.pictures.makers import UNIFORM, InversionScene, bare, inversion_scene, psnr

pytestmark = pytest.mark.slow


def attacked(
    model: Any, dataset: str = "fashion-mnist", seed: int = 0, **fields: Any
) -> tuple[InversionScene, list[Guess]]:
    there = inversion_scene(ATTACKS.make({"name": "dlg", **fields}), there=bare("fedsgd", model, dataset))
    return there, list(there.guesses(seed))


@pytest.mark.parametrize("model", [UNIFORM, "lenet-sigmoid"], ids=["uniform", "default"])
def test_a_picture_and_its_label_come_back(model: Any) -> None:
    there, guesses = attacked(model, iterations=12)
    assert psnr(guesses[-1].pictures, there.x) > 40
    assert guesses[-1].labels.tolist() == there.y.tolist()


def test_every_guess_explains_more_than_the_one_before() -> None:
    _, guesses = attacked(UNIFORM, iterations=12)
    losses = [guess.loss for guess in guesses]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 1e-4 * losses[1]


def test_it_ends_when_next_to_nothing_is_open() -> None:
    _, guesses = attacked("lenet-sigmoid", tolerance=1e-6)
    assert guesses[-1].loss <= 1e-6 and guesses[-1].iteration == guesses[-1].of < 300


def test_curvature_taken_for_zero_is_what_fails_on_usual_first_weights() -> None:
    """Where the distance is small L-BFGS goes astray; multiplied, the same steps find the picture."""
    plain, strong = (
        attacked("lenet-sigmoid", "cifar10", iterations=12, search=False, gain=gain) for gain in (0.01, 1e5)
    )
    assert psnr(plain[1][-1].pictures, plain[0].x) < 15 < 25 < psnr(strong[1][-1].pictures, strong[0].x)


def test_a_line_search_keeps_a_wild_start_from_running_away() -> None:
    wild, calm = (attacked(UNIFORM, iterations=10, lr=10.0, search=search)[1][-1] for search in (False, True))
    assert math.isinf(wild.loss) or wild.loss > 100 * calm.loss
