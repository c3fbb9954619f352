"""Inverting Gradients: the smoothness that fits the model, in the request, its id and the search."""

from __future__ import annotations

from typing import Any

import pytest

from engine.attacks.pictures.inverting_gradients import (
    NORMALISED_SMOOTHNESS,
    SMOOTHNESS,
    WIDE_SMOOTHNESS,
    InvertingGradients,
)
from engine.events import Judged
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec
from tests.engine.attacks.pictures.makers import inversion_scene, quick, small_plan

SMALL_CONVNET = {"name": "convnet", "width": 4}


def spec(model: Any, **fields: Any) -> AttackSpec:
    part = {"name": "inverting-gradients", "iterations": 2, **fields}
    return AttackSpec(run={"method": "fedsgd", "model": model}, attack=part, pictures=("test-0",))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        *((name, SMOOTHNESS) for name in ("mlp", "lenet-sigmoid", "lenet5")),
        ("alexnet", NORMALISED_SMOOTHNESS),
        ({"name": "convnet", "width": 32}, NORMALISED_SMOOTHNESS),
        ("convnet", WIDE_SMOOTHNESS),
    ],
)
def test_a02_the_smoothness_differs_by_model(model: Any, expected: float) -> None:
    request = spec(model)
    assert request.attack == InvertingGradients(iterations=2)  # the request itself leaves it open
    assert request.suited_attack == InvertingGradients(iterations=2, smoothness=expected)
    assert request.canonical()["attack"]["smoothness"] == expected


@pytest.mark.parametrize("model", ["lenet5", "convnet"])
def test_a02_a_given_smoothness_stays(model: str) -> None:
    assert spec(model, smoothness=0.03).suited_attack.smoothness == 0.03  # type: ignore[attr-defined]
    assert spec(model, smoothness=0.0).canonical()["attack"]["smoothness"] == 0.0


def test_a02_stored_attacks_keep_their_ids_and_can_be_computed_again() -> None:
    """Earlier versions wrote 0.01 into every stored attack. It is still computed with 0.01."""
    for model in ("lenet5", "convnet"):
        stored = spec(model, smoothness=0.01)
        again = AttackSpec(**stored.canonical())
        assert again.id == stored.id and again.suited_attack == stored.attack and again.replay_problem() is None
    assert spec("lenet5").id == spec("lenet5", smoothness=0.01).id
    assert spec("convnet").id == spec("convnet", smoothness=0.03).id != spec("convnet", smoothness=0.01).id


def test_another_model_changes_the_smoothness() -> None:
    request = spec("lenet5")
    moved = request.with_(run=request.run.with_(model=SMALL_CONVNET))
    assert moved.canonical()["attack"]["smoothness"] == NORMALISED_SMOOTHNESS


@pytest.mark.slow
def test_a02_the_search_uses_the_smoothness_of_the_model() -> None:
    losses = {}
    for smoothness in (None, SMOOTHNESS, NORMALISED_SMOOTHNESS):
        part = quick("inverting-gradients", smoothness=smoothness)
        scene = inversion_scene(part, plan=small_plan("fedsgd", SMALL_CONVNET))
        losses[smoothness] = [guess.loss for guess in scene.guesses()]
    assert losses[None] == losses[NORMALISED_SMOOTHNESS] != losses[SMOOTHNESS]


@pytest.mark.slow
def test_an_attack_starts_with_the_smoothness_of_its_model() -> None:
    chosen = next(event for event in attack(spec(SMALL_CONVNET)) if isinstance(event, Judged))
    given = spec(SMALL_CONVNET, smoothness=NORMALISED_SMOOTHNESS)
    assert chosen == next(event for event in attack(given) if isinstance(event, Judged))
