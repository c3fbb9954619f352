"""Checks, before an attack runs, whether its model, view and pictures allow it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from engine.attacks import ATTACKS
from engine.errors import BadInput, LeakLensError, refusal
from engine.leakage import portrait
from engine.part import Problem
from engine.records import Seat, UploadKind, View
from engine.specs.attack import PICTURE, AttackSpec, MembershipSpec
from engine.specs.run import SHELVES, RunSpec
from engine.training.plan import Plan, make_plan

if TYPE_CHECKING:
    from engine.leakage.target import AttackResources

PICTURE_SHAPE = (3, 32, 32)  # a shape that every model of pictures accepts


def problem(spec: AttackSpec) -> Problem | None:
    """The first reason why this attack cannot work; finding it needs no training."""
    old_format = spec.replay_problem()
    if old_format:
        return old_format
    try:
        plan, module = _plan_and_model(json.dumps(spec.run.canonical(), sort_keys=True))
    except LeakLensError as error:
        return Problem(error.message, error.remedy)
    for run_problem in spec.run.problems():
        if run_problem.fatal:
            return run_problem
    return first_problem(spec, plan, module)


def handles_pictures(part: str, name: str) -> bool:
    """Whether the data set holds pictures, or the model accepts them; an attack needs both."""
    made = SHELVES[part].make(name)
    if part == "dataset":
        return len(made.shape) == len(PICTURE_SHAPE)
    return not made.misfit(PICTURE_SHAPE)


@lru_cache(maxsize=16)  # the columns of a page: each holds a model
def _plan_and_model(canonical: str) -> tuple[Plan, nn.Module]:
    plan = make_plan(RunSpec(**json.loads(canonical)), False)
    return plan, plan.world.build(torch.Generator())


def first_problem(spec: AttackSpec, plan: Plan, module: nn.Module) -> Problem | None:
    """The first reason why the attack cannot work with this plan and model, whatever the home holds."""
    attack = spec.attack
    if not plan.world.pictures:
        rule = f"looks for pictures, and {plan.spec.dataset.name} holds {plan.spec.dataset.noun}"
        return Problem(rule, "Choose a run that learns from pictures")
    absent = absent_view(plan, spec.view)
    if absent:
        return absent
    unread = unread_upload(spec, plan) or single_client(spec, plan)
    if unread:
        return unread
    changed = changed_model(spec, plan)
    if changed:
        return changed
    misfit = attack.misfit(plan.world, module)
    if misfit:
        return Problem(misfit, "Choose another attack or another model")
    return _learned_picture(spec, plan)


def changed_model(spec: AttackSpec, plan: Plan) -> Problem | None:
    """Why the server cannot change the model for this attack, or must."""
    attack = spec.attack
    if not attack.malicious:
        if spec.upload != "cheat":
            return None
        fitting = ", ".join(sorted(part.name for part in ATTACKS if part.malicious))
        return Problem("leaves the model as it is, and upload cheat needs a changed one", f"Choose {fitting}")
    if spec.view != "server":
        reason = "works only for the server, which tampers with the model it sends"
        return Problem(reason, "Choose the view of the server")
    if plan.method.stateful:
        reason = f"changes the layers of the model, and the clients of {plan.method.name} keep values for each layer"
        return Problem(reason, "Choose another attack or another method")
    if not spec.pictures:
        return Problem("needs a tampered model, and no run sent one", "Choose a picture")
    if spec.upload == "ordinary":
        return Problem("changes the model that the server sends", "Choose upload cheat")
    return None


def absent_view(plan: Plan, view: View) -> Problem | None:
    """Why this run has no such view."""
    absent = plan.guarantee.absent.get(view)
    return Problem(f"is not possible in this view: {absent}", "Choose another view") if absent else None


def single_client(spec: AttackSpec, plan: Plan) -> Problem | None:
    """Why no other client observes the attacked round: the round has one client."""
    if spec.view != "client":
        return None
    try:
        round = round_number(spec, plan)
    except BadInput:
        return None  # `refuse` reports a round that does not exist
    if len(plan.cohort(round)) != 1:
        return None
    reason = f"is not possible in this view: no other client took part in round {round}"
    return Problem(reason, "Choose another view or another round")


def upload_kind(plan: Plan, view: View) -> UploadKind:
    """What the clients of this run upload."""
    return plan.method.protocol(plan.world, Seat(0, 0, 1, 1, 1, max(1, plan.world.sampled)), view).kind


def empty_round(round: int) -> BadInput:
    return BadInput(f"attack: round: no client took part in round {round}", "Choose first or last, or another round")


def refuse_absent_client(client: int | None, cohort: Sequence[int]) -> None:
    """Refuse a client that took no part in the attacked round."""
    if client is not None and client not in cohort:
        clients = ", ".join(map(str, cohort[:20])) or "none"
        rule = f"must be one that took part in that round ({clients})"
        raise refusal("attack: client", rule, client, "Leave it out")


def membership_problem(spec: MembershipSpec, plan: Plan) -> Problem | None:
    """The first reason why this membership attack cannot work; finding it needs no training."""
    method, view = plan.method, spec.view
    absent = absent_view(plan, view)
    if absent:
        return absent
    if method.headless:
        reason = f"scores the answers of a model, and the clients of {method.name} share no last layer"
        return Problem(reason, "Choose another method")
    kind = upload_kind(plan, view)
    if view in ("server", "aggregate") and kind not in spec.attack.reads:
        reason = f"scores the answers of models, and the clients of {method.name} upload {kind}"
        return Problem(reason, "Choose the view of an outsider")
    # Privacy: with the seed of the run an attack could compute its noise and batches, and the order of the pool.
    if spec.attack.shadows(spec.run.with_(seed=0 if spec.run.seed else 1)):
        return Problem("needs models that the attacker trains itself, which do not run yet", "Choose another attack")
    if spec.unit == "user" and view == "server":
        return Problem("compares clients, and an upload is of one client", "Choose unit record, or another view")
    return None


def refuse_membership(spec: MembershipSpec) -> None:
    """Raises BadInput for anything that would stop the attack, before it trains."""
    spec.refuse_replay()
    plan = make_plan(spec.run)
    reason = membership_problem(spec, plan)
    if reason:
        raise BadInput(f"attack: {spec.attack.name}: {reason.reason}", reason.remedy)
    round = round_number(spec, plan)
    cohort = plan.cohort(round)
    took_part = plan.took_part(round)
    if not cohort and (spec.view != "outsider" or not took_part):
        raise empty_round(round)
    members = {*cohort} if spec.view == "aggregate" else took_part
    if spec.view == "client":
        members = members - {cohort[-1]}  # the observer
    if not members:
        rule = f"no client but the observer took part up to round {round}"
        raise BadInput(f"attack: view: {rule}", "Choose another view or a later round")
    if spec.unit == "user" and min(len(members), plan.world.clients - len(took_part)) < 2:
        rule = f"{len(took_part)} of {plan.world.clients} clients took part, and both groups need at least 2"
        raise BadInput(f"attack: unit: {rule}", "Choose unit record, or attack a run that draws fewer clients")
    refuse_absent_client(spec.client, cohort)


def unread_upload(spec: AttackSpec, plan: Plan) -> Problem | None:
    """Why the attack cannot read what this observer receives. A method uploads gradients, updates or samples."""
    attack = spec.attack
    kind = upload_kind(plan, spec.view)
    if kind not in attack.reads:
        wanted = " or ".join(sorted(f"{read}s" if read != "samples" else read for read in attack.reads))
        uploaded = kind if kind == "samples" else f"{kind}s"
        fitting = sorted(part.name for part in ATTACKS if part.goal == attack.goal and kind in part.reads)
        remedy = f"Choose {', '.join(fitting)}" if fitting else "Choose another method"
        return Problem(f"reads {wanted}, and the clients of {plan.method.name} upload {uploaded}", remedy)
    if kind == "samples" and spec.view in ("outsider", "client"):
        return Problem("needs the uploaded samples, and this observer receives only models", "Choose the server's view")
    return None


def _learned_picture(spec: AttackSpec, plan: Plan) -> Problem | None:
    """An attack that learns from test pictures cannot attack one of them: its prior would contain the truth."""
    if not spec.attack.learns:
        return None
    limit = len(plan.test_labels) // 2
    for name in spec.pictures:
        if name.startswith("test-") and int(name.removeprefix("test-")) >= limit:
            rule = f"learns from the second half of the test pictures, got {name}"
            return Problem(rule, f"Choose test-0 to test-{limit - 1}")
    return None


def refuse(spec: AttackSpec, resources: AttackResources) -> None:
    """Raises BadInput for anything that would stop the attack, before it reads a picture."""
    spec.refuse_replay()
    plan = make_plan(spec.run)
    reason = first_problem(spec, plan, plan.world.build(torch.Generator()))
    if reason:
        raise BadInput(f"attack: {spec.attack.name}: {reason.reason}", reason.remedy)
    round = round_number(spec, plan)
    cohort = plan.cohort(round)
    if not cohort:
        raise empty_round(round)
    refuse_absent_client(spec.client, cohort)
    for name in spec.pictures:
        refuse_picture(name, spec, plan, resources)


def refuse_picture(name: str, spec: AttackSpec, plan: Plan, resources: AttackResources) -> None:
    """Raises an error for a picture that does not exist or has no valid label."""
    split, place, upload, label = picture_name_parts(name)
    if upload is not None:
        resources.photo(upload)
        if int(label) >= plan.world.classes:
            raise refusal("attack: pictures", f"must have a label between 0 and {plan.world.classes - 1}", name)
        return
    count = len(plan.labels if split == "train" else plan.test_labels)
    if int(place) >= count:
        raise refusal("attack: pictures", f"must be {split}-0 to {split}-{count - 1}", name)


def picture_name_parts(picture: str) -> tuple[str, str, str | None, str]:
    """The parts of a picture's name: split and place, or the name and label of the portrait or an uploaded picture."""
    match = PICTURE.fullmatch(picture)
    assert match is not None
    split, place, upload, label = match.groups()
    if split is None and upload is None:
        upload = portrait.NAME
    return split, place, upload, label


def round_number(spec: AttackSpec | MembershipSpec, plan: Plan) -> int:
    """The attacked round as a number; `first` and `last` count only rounds with clients."""
    rounds = range(1, plan.last_round + 1)
    in_order = rounds[::-1] if spec.round == "last" else rounds
    nearest = next((round for round in in_order if plan.cohort(round)), None)
    if nearest is None:
        raise BadInput("attack: round: no client took part in this run", "Choose more rounds or clients")
    if isinstance(spec.round, int) and spec.round not in rounds:
        raise refusal("attack: round", f"must be between 1 and {plan.last_round}", spec.round, "Choose first or last")
    return spec.round if isinstance(spec.round, int) else nearest
