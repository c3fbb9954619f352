"""iDLG: labels read off the last layer, pictures optimised by L-BFGS."""

from __future__ import annotations

import pytest
import torch

from engine.attacks import ATTACKS
from engine.attacks.pictures.problem import InversionProblem
from engine.records import Guess
from tests.engine.attacks.pictures.makers import UNIFORM, inversion_scene, psnr, small_plan

pytestmark = pytest.mark.slow


def test_a_picture_is_reconstructed() -> None:
    scene = inversion_scene(ATTACKS.make({"name": "idlg", "iterations": 12}), plan=small_plan("fedsgd", UNIFORM))
    last = list(scene.guesses())[-1]
    assert psnr(last.pictures, scene.x) > 40


def test_its_labels_are_fixed_from_the_start() -> None:
    scene = inversion_scene(ATTACKS.make({"name": "idlg", "iterations": 1}), ("fedsgd", 3, "server"))
    labels = InversionProblem.of(scene.exposure, scene.module()).labels
    assert labels.tolist() == sorted(scene.y.tolist())
    assert all(torch.equal(guess.labels, labels) for guess in scene.guesses())


def last_guess(name: str) -> Guess:
    attack = ATTACKS.make({"name": name, "iterations": 8})
    return list(inversion_scene(attack, plan=small_plan("fedsgd", UNIFORM)).guesses())[-1]


def test_it_needs_fewer_steps_than_dlg() -> None:
    assert last_guess("idlg").loss < last_guess("dlg").loss
