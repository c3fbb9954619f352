"""A membership attack tells members apart where a model remembers them, and by chance where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.attacks import ATTACKS
from engine.attacks.membership.base import MembershipAttack
from engine.compute.context import AttackContext
from engine.errors import BadInput
from engine.events import Finished, Scored, Started, decode, encode
from engine.leakage.membership import build_pool, by_client, judge, membership
from engine.methods import METHODS
from engine.records import Sight
from engine.seeds import Seeds
from engine.specs.attack import MembershipSpec, PictureAttackSpec, attack_spec
from engine.specs.run import RunSpec
from engine.training.plan import load_plan
from tests.engine.makers import tiny_spec

NAMES = [part.name for part in ATTACKS if part.goal == "membership"]
OVERFITTED: dict[str, Any] = {
    "dataset": "cifar10", "model": {"name": "mlp", "hidden": 128, "bias": True}, "clients": 10, "sampled": 10,
    "sampling": "all", "epochs": 5, "batch": 16, "lr": 0.05, "rounds": 6,
}  # fmt: skip


def scored(run: RunSpec, **fields: Any) -> Scored:
    events = list(membership(MembershipSpec(run=run, **fields), threads=2))
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    (event,) = [event for event in events if isinstance(event, Scored)]
    assert encode(decode(encode(event))) == encode(event)
    return event


@pytest.mark.slow
def test_an_overfitted_run_is_told_apart_and_a_private_one_is_not() -> None:
    overfitted = RunSpec(method="fedavg", **OVERFITTED)
    outsider = scored(overfitted)
    server = scored(overfitted, view="server")
    assert outsider.interval[0] > 0.6 and server.interval[0] > 0.8 and server.auc > outsider.auc
    assert (outsider.members, outsider.others, outsider.client, server.client) == (600, 600, None, 0)
    assert len(outsider.roc) <= 60 and outsider.tpr["0.1"] > 0.15
    clients = scored(overfitted, unit="user")
    assert (clients.members, clients.others) == (10, 10) and clients.auc > 0.9 and clients.interval[0] >= 0.5
    private = RunSpec(method={"name": "udp-fedavg", "noise": 4.0}, **{**OVERFITTED, "rounds": 3})
    for view in ("outsider", "server"):
        event = scored(private, view=view)
        assert event.interval[0] < 0.5 + 0.03 and event.auc < 0.58


@pytest.mark.parametrize("view", ["server", "aggregate", "outsider", "client"])
@pytest.mark.parametrize("method", ["fedavg", "fedsgd", "udp-fedavg", "dp-fedavg", "scaffold", "ppsgd", "fedceo"])
def test_every_view_of_every_family_is_scored_or_refused(method: str, view: str) -> None:
    run = tiny_spec(method=method, model={"name": "mlp", "hidden": 8})
    if (method, view) == ("fedceo", "aggregate"):
        with pytest.raises(BadInput, match="is not possible in this view"):
            scored(run, view=view)
        return
    event = scored(run, view=view)
    assert event.view == view and event.round == 2 and 0.2 < event.auc < 0.8
    assert (event.client is None) == (view != "server")


def test_records_of_clients_that_never_took_part_are_no_members() -> None:
    plan = load_plan(tiny_spec(clients=40, sampled=2, sampling="fixed"))
    took_part = {client for round in (1, 2) for client in plan.cohort(round)}
    pool = build_pool(MembershipSpec(run=plan.spec), plan, 2, None)
    assert {*pool.owners[pool.members].tolist()} == took_part and len(took_part) < 10
    one_round = build_pool(MembershipSpec(run=plan.spec, view="aggregate", round=2), plan, 2, None)
    assert {*one_round.owners[one_round.members].tolist()} == set(plan.cohort(2))


def test_both_halves_of_a_pool_have_the_same_classes_and_share_no_record() -> None:
    partition = {"name": "dirichlet", "alpha": 0.3}
    plan = load_plan(tiny_spec(partition=partition, clients=20, sampled=4))
    for client in (None, plan.cohort(2)[0]):
        pool = build_pool(MembershipSpec(run=plan.spec), plan, 2, client)
        inside, outside = (torch.bincount(pool.labels[pool.members == side], minlength=10) for side in (True, False))
        assert torch.equal(inside, outside) and int(inside.sum()) > 20
        rows = pool.x.flatten(1)
        assert len(torch.unique(rows[~pool.members], dim=0)) == int((~pool.members).sum())


def test_an_attack_sees_no_member_no_owner_and_no_seed() -> None:
    """With the members, an attack could choose its scores by them."""
    assert {field.name for field in fields(Sight)} == {"view", "rounds", "logits", "labels", "own", "members"}
    sights: list[Sight] = []

    class Spy(MembershipAttack):
        def score(self, sight: Sight, shadows: Sequence[Sight], context: AttackContext) -> Tensor:
            sights.append(sight)
            assert not shadows and context.seeds == Seeds(5)
            return sight.logits[-1].amax(1)

    ATTACKS.add("spy", title="a test attack", source="tests")(Spy)
    try:
        scored(tiny_spec(), attack="spy", seed=5)
    finally:
        del ATTACKS._parts["spy"]
    (sight,) = sights
    assert sight.members is None and sight.own is None and sight.logits.shape == (1, len(sight.labels), 10)


def test_scores_that_know_nothing_are_judged_as_chance() -> None:
    plan = load_plan(tiny_spec())
    spec = MembershipSpec(run=plan.spec)
    pool = build_pool(spec, plan, 2, None)
    inside = 0
    for seed in range(60):
        scores = torch.randn(len(pool.labels), generator=torch.Generator().manual_seed(seed))
        low, high = judge(spec, 2, None, scores, pool).interval
        inside += low <= 0.5 <= high
    assert inside >= 53  # 95 % of 60, and chance


def test_a_client_has_the_mean_score_of_its_records() -> None:
    plan = load_plan(tiny_spec(clients=6, sampled=6, sampling="all"))
    spec = MembershipSpec(run=plan.spec, unit="user")
    pool = build_pool(spec, plan, 2, None)
    scores = pool.owners.double() + pool.members.double()
    means, members = by_client(scores, pool)
    assert members.tolist() == [True] * 6 + [False] * 6
    assert means.tolist() == pytest.approx([1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5])


def test_the_same_request_gives_the_same_result_from_any_state() -> None:
    run = tiny_spec(rounds=3)
    assert scored(run, view="server") == scored(run, view="server")
    assert scored(run, round="first") != scored(run)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"run": {"method": "centaur"}},
            "attack: loss-threshold: scores the answers of a model, and the clients of centaur",
        ),
        (
            {"view": "server", "unit": "user"},
            "attack: loss-threshold: compares clients, and an upload is of one client",
        ),
        ({"round": 99}, "attack: round: must be between 1 and 30, got 99"),
        ({"view": "server", "client": 5000}, "attack: client: must be one that took part in that round ("),
        ({"client": 3}, "attack: client: must be left out in the view outsider, which has no single upload, got 3"),
        ({"attack": "map"}, "attack: map: is an attack on pictures, and this request is one on membership"),
        ({"kind": "pictures"}, "attack: kind: must be membership in this request, got pictures"),
        (
            {"run": {"clients": 1, "sampled": 1}, "view": "client"},
            "is not possible in this view: there is no other client",
        ),
        ({"run": 5}, "attack: run: must be a run, as an object, got 5"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_training(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInput) as refused:
        list(membership(MembershipSpec(**{"run": {}, **fields})))
    assert text in str(refused.value) and refused.value.remedy


def test_a_kind_is_in_the_json_of_every_goal_but_pictures() -> None:
    of_pictures = PictureAttackSpec(run={}, attack="map", pictures=("test-0",))
    of_members = MembershipSpec(run={})
    assert "kind" not in of_pictures.canonical() and of_members.canonical()["kind"] == "membership"
    for spec in (of_pictures, of_members):
        assert attack_spec(spec.canonical()) == spec and attack_spec(spec.canonical()).id == spec.id
    with pytest.raises(BadInput, match="attack: no kind dreams"):
        attack_spec({"kind": "dreams", "run": {}})
    with pytest.raises(BadInput, match="is an attack on membership, and this request is one on pictures"):
        PictureAttackSpec(run={}, attack="loss-threshold")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", METHODS.names())
def test_a_pair_of_attack_and_method_is_scored_or_refused(name: str, method: str) -> None:
    spec = MembershipSpec(run=tiny_spec(method=method, model={"name": "mlp", "hidden": 8}, rounds=1), attack=name)
    if METHODS[method].headless:
        with pytest.raises(BadInput):
            list(membership(spec))
        return
    events = list(membership(spec))
    assert any(isinstance(event, Scored) for event in events)


def test_sentences_are_scored_too() -> None:
    run = RunSpec(
        dataset="movie-reviews",
        model={"name": "lstm", "words": 200, "width": 8},
        clients=20,
        sampled=4,
        rounds=1,
        epochs=1,
    )
    assert 0.3 < scored(run).auc < 0.7
