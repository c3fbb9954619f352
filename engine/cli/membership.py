"""The membership side of the command `attack`: its spec, and its report as JSON and as text."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput
from engine.events import Event, Scored

if TYPE_CHECKING:
    from engine.specs.attack import MembershipSpec

NO_PROOF = "An AUC of 0.5 is no proof of privacy: a better attack may exist."
POOL = {
    "record": "members are training records, the others held-out test records of the same classes",
    "user": "members are clients that took part, the others clients that never did",
}


def read_membership(args: argparse.Namespace, run: Mapping[str, Any], attack: Mapping[str, Any]) -> MembershipSpec:
    """The membership attack that the options describe, refused before anything is trained."""
    from engine.leakage.compatibility import refuse_membership
    from engine.part import hyphened
    from engine.specs.attack import MembershipSpec

    for option, value, absent in (
        ("picture", args.picture, []),
        ("label", args.label, 0),
        ("restarts", args.restarts, 1),
        ("out", args.out, None),
        ("upload", args.upload, "listed"),
    ):
        if value != absent:
            rule = f"attack: --{option}: is for attacks on pictures, and {attack['name']} is one on membership"
            raise BadInput(rule, "Leave it out")
    spec = MembershipSpec(
        run=dict(run),
        attack=dict(attack),
        view=hyphened(args.view),
        unit="record" if args.unit is None else args.unit,
        round=args.round if args.round is not None else "last",
        client=args.client,
        seed=args.seed,
    )
    refuse_membership(spec)
    return spec


def membership_report(run_id: str, events: Iterable[Event]) -> dict[str, Any]:
    """The events of a membership attack as one object."""
    events = list(events)
    scored = next((event for event in events if isinstance(event, Scored)), None)
    body: dict[str, Any] = {"id": run_id, "kind": "membership"}
    if scored:
        body |= {
            "attack": scored.attack,
            "view": scored.view,
            "unit": scored.unit,
            "round": scored.round,
            "client": scored.client,
            "n": scored.members,
            "others": scored.others,
            "auc": scored.auc,
            "interval": list(scored.interval),
            "tpr": dict(scored.tpr),
            "numbers": dict(scored.numbers),
            "roc": [list(point) for point in scored.roc],
        }
    return body


def membership_lines(body: Mapping[str, Any]) -> list[str]:
    """The report as text."""
    lines = [f"attack {body['id']}: {body['status']}"]
    if "auc" not in body:
        return lines
    low, high = body["interval"]
    noun = {"record": "records", "user": "clients"}[body["unit"]]
    seen = f"round {body['round']}" if body["client"] is None else f"round {body['round']}, client {body['client']}"
    lines.append(f"  {body['attack']}: AUC {body['auc']:.3f} (95 %: {low:.3f} to {high:.3f}; 0.5 tells nothing)")
    for fpr, tpr in body["tpr"].items():
        lines.append(f"  {100 * tpr:.1f} % of members found at {100 * float(fpr):g} % false alarms")
    lines.append(
        f"  seen by: {body['view']}, {seen}; {body['n']} {noun} against {body['others']}: {POOL[body['unit']]}"
    )
    lines.append(f"  {NO_PROOF}")
    return lines
