"""The reason why an attack cannot work is known before it runs."""

from __future__ import annotations

from typing import Any

from engine.leakage.compatibility import problem
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

RUN: dict[str, Any] = {"dataset": "cifar10", "model": "lenet-sigmoid", "clients": 4, "sampled": 4, "rounds": 2}


def problem_text(attack: str, run: dict[str, Any] | None = None, **fields: Any) -> str:
    spec = AttackSpec(run=RunSpec(**{**RUN, **(run or {})}), attack=attack, pictures=("test-0",), **fields)
    reason = problem(spec)
    return "" if reason is None else f"{reason.reason}. {reason.remedy}."


def test_a_suitable_attack_has_no_problem() -> None:
    assert problem_text("map") == ""
    assert problem_text("analytic", {"model": "mlp"}) == ""
    assert problem_text("inverting-gradients", view="outsider") == ""


def test_a_model_that_does_not_fit() -> None:
    text = problem_text("analytic")
    assert "first layer is linear" in text and "another attack" in text
