"""What stands in the way of an attack is said before it is asked, and nothing else is."""

from __future__ import annotations

from typing import Any

from engine.leakage.compatibility import problem
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

RUN: dict[str, Any] = {"dataset": "cifar10", "model": "lenet-sigmoid", "clients": 4, "sampled": 4, "rounds": 2}


def said(attack: str, run: dict[str, Any] | None = None, **more: Any) -> str:
    found = problem(AttackSpec(run=RunSpec(**{**RUN, **(run or {})}), attack=attack, pictures=("test-0",), **more))
    return "" if found is None else f"{found.reason}. {found.remedy}."


def test_what_fits_has_no_problem() -> None:
    assert said("map") == said("analytic", {"model": "mlp"}) == said("inverting-gradients", view="outsider") == ""


def test_a_model_that_does_not_fit() -> None:
    assert "first layer is linear" in said("analytic") and "another attack" in said("analytic")
