"""Labels read off the last layer, pictures found by curvature."""

from __future__ import annotations

import pytest
import torch

from engine.attacks import ATTACKS
from engine.attacks.pictures.problem import InversionProblem
from tests.engine.attacks.pictures.makers import UNIFORM, bare, inversion_scene, psnr

pytestmark = pytest.mark.slow


def test_a_picture_comes_back() -> None:
    there = inversion_scene(ATTACKS.make({"name": "idlg", "iterations": 12}), there=bare("fedsgd", UNIFORM))
    last = list(there.guesses())[-1]
    assert psnr(last.pictures, there.x) > 40


def test_its_labels_are_read_before_it_looks() -> None:
    there = inversion_scene(ATTACKS.make({"name": "idlg", "iterations": 1}), ("fedsgd", 3, "server"))
    read = InversionProblem.of(there.exposure, there.module()).labels
    assert read.tolist() == sorted(there.y.tolist())
    assert all(torch.equal(guess.labels, read) for guess in there.guesses())


def test_with_the_labels_known_fewer_steps_are_enough() -> None:
    joint, alone = (
        list(inversion_scene(ATTACKS.make({"name": name, "iterations": 8}), there=bare("fedsgd", UNIFORM)).guesses())[
            -1
        ]
        for name in ("dlg", "idlg")
    )
    assert alone.loss < joint.loss
