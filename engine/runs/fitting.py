"""What stands in the way of an attack, said before it is asked: the model, the view, the pictures."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import LeakLensError
from engine.part import Problem

if TYPE_CHECKING:
    from torch import nn

    from engine.spec import AttackSpec
    from engine.stage import Plan

OTHER = "Choose another attack or another model"


def problem(spec: AttackSpec) -> Problem | None:
    """The first reason why this attack cannot work; nothing is trained to find it."""
    attack = spec.attack
    try:
        outline, module = _outline(json.dumps(spec.run.canonical(), sort_keys=True))
    except LeakLensError as error:
        return Problem(error.message, error.remedy)
    if fatal := next((one for one in spec.run.problems() if one.fatal), None):
        return fatal
    if absent := outline.guarantee.absent.get(spec.view):
        return Problem(f"is not possible in this view: {absent}", "Choose another view")
    if attack.malicious and spec.view != "server":
        return Problem("works only for the server, who sends a model that it changed", "Choose what the server sees")
    if reason := attack.misfit(outline.world, module):
        return Problem(reason, OTHER)
    most = len(outline.test_labels) // 2
    if attack.learns and any(name.startswith("test-") and int(name[5:]) >= most for name in spec.pictures):
        return Problem("learns from the second half of the test pictures", f"Choose test-0 to test-{most - 1}")
    return None


@lru_cache(maxsize=64)
def _outline(question: str) -> tuple[Plan, nn.Module]:
    import torch

    from engine.spec import RunSpec
    from engine.stage import plan

    outline = plan(RunSpec(**json.loads(question)), False)
    return outline, outline.world.build(torch.Generator())
