"""What stands in the way of an attack, said before it is asked: the model, the view, the pictures."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import LeakLensError
from engine.part import Problem

if TYPE_CHECKING:
    from torch import nn

    from engine.specs.attack import AttackSpec
    from engine.training.plan import Plan


PICTURE = (3, 32, 32)  # any shape that every model of pictures reads


def problem(spec: AttackSpec) -> Problem | None:
    """The first reason why this attack cannot work; nothing is trained to find it."""
    from engine.leakage.target import obstacle

    try:
        outline, module = _outline(json.dumps(spec.run.canonical(), sort_keys=True))
    except LeakLensError as error:
        return Problem(error.message, error.remedy)
    fatal = next((one for one in spec.run.problems() if one.fatal), None)
    return fatal or obstacle(spec, outline, module)


def of_pictures(part: str, name: str) -> bool:
    """Whether a data set holds pictures, or a model reads them: nothing else is attacked here."""
    from engine.specs.run import SHELVES

    made = SHELVES[part].make(name)
    return len(made.shape) == len(PICTURE) if part == "dataset" else not made.misfit(PICTURE)


@lru_cache(maxsize=64)
def _outline(question: str) -> tuple[Plan, nn.Module]:
    import torch

    from engine.specs.run import RunSpec
    from engine.training.plan import plan

    outline = plan(RunSpec(**json.loads(question)), False)
    return outline, outline.world.build(torch.Generator())
