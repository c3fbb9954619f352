"""What rules an attack out: the model, the view or the pictures. Known before the attack is requested."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from engine.errors import BadInput, LeakLensError, refusal
from engine.part import Problem
from engine.specs.attack import PICTURE, AttackSpec
from engine.specs.run import SHELVES, RunSpec
from engine.training.plan import Plan, make_plan

if TYPE_CHECKING:
    from engine.leakage.target import AttackResources

PICTURE_SHAPE = (3, 32, 32)  # any shape that every model of pictures reads


def problem(spec: AttackSpec) -> Problem | None:
    """The first reason why this attack cannot work; nothing is trained to find it."""
    try:
        plan, module = _outline(json.dumps(spec.run.canonical(), sort_keys=True))
    except LeakLensError as error:
        return Problem(error.message, error.remedy)
    fatal = next((one for one in spec.run.problems() if one.fatal), None)
    return fatal or obstacle(spec, plan, module)


def of_pictures(part: str, name: str) -> bool:
    """Whether a data set holds pictures, or a model reads them: nothing else is attacked here."""
    made = SHELVES[part].make(name)
    return len(made.shape) == len(PICTURE_SHAPE) if part == "dataset" else not made.misfit(PICTURE_SHAPE)


@lru_cache(maxsize=64)
def _outline(question: str) -> tuple[Plan, nn.Module]:
    plan = make_plan(RunSpec(**json.loads(question)), False)
    return plan, plan.world.build(torch.Generator())


def obstacle(spec: AttackSpec, plan: Plan, module: nn.Module) -> Problem | None:
    """The first reason why such an attack cannot work, whatever this home holds."""
    attack = spec.attack
    if not plan.world.pictures:
        law = f"looks for pictures, and {plan.spec.dataset.name} holds {plan.spec.dataset.noun}"
        return Problem(law, "Choose a run that learns from pictures")
    if absent := plan.guarantee.absent.get(spec.view):
        return Problem(f"is not possible in this view: {absent}", "Choose another view")
    if attack.malicious and spec.view != "server":
        return Problem("works only for the server, who sends a model that it changed", "Choose the view of the server")
    if attack.malicious and not spec.pictures:
        return Problem("changes the model that is sent, and no run records that", "Choose a picture")
    if reason := attack.misfit(plan.world, module):
        return Problem(reason, "Choose another attack or another model")
    most = len(plan.test_labels) // 2
    late = [name for name in spec.pictures if name.startswith("test-") and int(name.removeprefix("test-")) >= most]
    if attack.learns and late:
        law = f"learns from the second half of the test pictures, got {late[0]}"
        return Problem(law, f"Choose test-0 to test-{most - 1}")
    return None


def refuse(spec: AttackSpec, resources: AttackResources) -> None:
    """Everything that would stop the attack, said before a picture is touched."""
    plan = make_plan(spec.run)
    if found := obstacle(spec, plan, plan.world.build(torch.Generator())):
        raise BadInput(f"attack: {spec.attack.name}: {found.reason}", found.remedy)
    cohort = plan.cohort(which(spec, plan))
    if spec.client is not None and spec.client not in cohort:
        known = ", ".join(map(str, cohort[:20])) or "nobody"
        raise refusal("attack: client", f"must be one that took part in that round ({known})", spec.client)
    for name in spec.pictures:
        refuse_picture(name, spec, plan, resources)


def refuse_picture(name: str, spec: AttackSpec, plan: Plan, resources: AttackResources) -> None:
    split, place, own, label = named(name)
    if own is not None:
        resources.picture(own)
        if int(label) >= plan.world.classes:
            raise refusal("attack: pictures", f"must have a label between 0 and {plan.world.classes - 1}", name)
        return
    count = len(plan.labels if split == "train" else plan.test_labels)
    if int(place) >= count:
        raise refusal("attack: pictures", f"must be {split}-0 to {split}-{count - 1}", name)


def named(picture: str) -> tuple[str, str, str | None, str]:
    """A picture's name in its parts: split and place, or the name and label of somebody's own."""
    match = PICTURE.fullmatch(picture)
    assert match is not None
    split, place, own, label = match.groups()
    return split, place, own, label


def which(spec: AttackSpec, plan: Plan) -> int:
    """The round as a number; first and last mean rounds in which somebody took part."""
    there = [round for round in range(1, plan.last + 1) if plan.cohort(round)]
    if not there:
        raise BadInput("attack: round: nobody took part in this run", "Ask for more rounds or clients")
    if isinstance(spec.round, int):
        if not 1 <= spec.round <= plan.last:
            raise refusal("attack: round", f"must be between 1 and {plan.last}", spec.round)
        return spec.round
    return there[0] if spec.round == "first" else there[-1]
