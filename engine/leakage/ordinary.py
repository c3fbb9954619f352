"""An ordinary upload: the run's own client trains as in the run, with one chosen picture among its records.

A probe with one picture is the easiest case for an attacker. This has the count, batches and steps of a real upload.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, refusal
from engine.leakage.probe import Tamper, Victim, content, make_victim, trained_victim
from engine.specs.attack import AttackSpec
from engine.training.exposure import pixels
from engine.training.plan import LoadedPlan
from engine.training.state import State

MOST_RECORDS = 2000  # originals of one upload that the judge compares and a page can show


def ordinary_victim(
    spec: AttackSpec, plan: LoadedPlan, state: State, round: int, chosen: tuple[Tensor, Tensor], team: ThreadTeam,
    tamper: Tamper | None,
) -> tuple[Victim, Tensor, Tensor]:  # fmt: skip
    """The client with the chosen picture among its records; the pictures that enter its upload, the chosen one first.

    The picture takes the place of the first record that enters the upload. A method that draws batches draws the same
    ones for it: what is drawn does not depend on the pictures.
    """
    picture, label = chosen
    listed = make_victim(plan, round, picture, label, spec.client)
    client = plan.client(listed.client)
    if len(client.y) > MOST_RECORDS:
        rule = f"must come from a client with at most {MOST_RECORDS:,} records"
        raise refusal("attack: upload: ordinary", rule, len(client.y), "Attack a run with more clients")
    records, labels = pixels(plan, client.x).cpu(), client.y.cpu().clone()
    own = replace(
        listed, pictures=records, labels=labels, ordinary=True, stream=spec.upload.encode() + content(picture, label)
    )
    trained = trained_victim(plan, state, own, spec.view, team, tamper)
    used = trained.contexts[trained.slot].used
    places = torch.arange(len(labels), device="cpu") if used is None else used.cpu()
    if not len(places):
        rule = f"attack: upload: client {listed.client} drew no record in round {round}"
        raise BadInput(rule, "Choose another round, or upload listed")
    first = int(places[0])
    records[first] = picture[0]
    labels[first] = label[0]
    return replace(own, pictures=records, labels=labels), records[places], labels[places]
