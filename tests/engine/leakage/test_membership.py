"""A membership attack tells members apart where a model remembers them, and by chance where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

import engine
from engine.attacks import ATTACKS
from engine.attacks.membership.base import MembershipAttack
from engine.attacks.membership.loss_threshold import LossThreshold
from engine.compute.context import AttackContext
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, RunFailed
from engine.events import Finished, Kept, Scored, Started, decode, encode
from engine.leakage.compatibility import refuse_membership
from engine.leakage.membership import (
    membership,
    own_seeds,
)
from engine.methods import METHODS
from engine.metrics import METRICS
from engine.metrics.membership.base import ScoreMetric
from engine.records import Sight
from engine.specs.attack import MembershipSpec, PictureAttackSpec, attack_spec
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import load_plan
from engine.training.rounds import Exchange, first_state, train_round
from tests.engine.leakage.pools import pool_of, seen_by
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
    half = RunSpec(method="fedavg", **{**OVERFITTED, "clients": 20, "sampling": "fixed", "sampled": 6, "rounds": 2})
    clients = scored(half, unit="user")
    assert clients.members + clients.others == 20 and clients.auc > 0.9 and clients.interval[0] > 0.5
    assert "0.01" not in clients.tpr and clients.numbers["auc"] == clients.auc
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


@pytest.mark.slow
def test_what_each_view_can_evaluate() -> None:
    """The server has what it sent and that with the upload, the aggregator the mean, an outsider the next model."""
    for method, sign in (("fedavg", 1.0), ("fedsgd", -0.1)):
        plan = load_plan(tiny_spec(method=method, clients=6, sampled=6, sampling="all", batch=100))
        exchanges: list[Exchange] = []
        states = [first_state(plan)]
        with ThreadTeam(1) as team:
            for round in (1, 2):
                states.append(train_round(plan, states[-1], round, team, watch=exchanges.append))
        exchange = next(each for each in exchanges if each.seats[0].round == 2)
        packet, upload = exchange.packets[3].model, exchange.uploads[3].model
        server = seen_by(plan, view="server", client=3)
        assert server.client == 3
        assert all(torch.equal(server.models[0][name], packet[name]) for name in packet)
        for name in packet:
            torch.testing.assert_close(server.models[1][name], packet[name] + sign * upload[name])
        outsider = seen_by(plan, view="outsider")
        assert all(torch.equal(outsider.models[-1][name], states[2].server[name]) for name in packet)
        if method == "fedavg":  # all clients, a server step of 1: the mean of the uploads is the step of the server
            aggregate = seen_by(plan, view="aggregate")
            for name in packet:
                torch.testing.assert_close(aggregate.models[1][name], states[2].server[name], rtol=1e-4, atol=1e-6)


def test_a_stored_state_gives_the_same_result_as_none() -> None:
    plan = load_plan(tiny_spec(rounds=4))
    states = [event for event in run(plan.spec) if isinstance(event, Kept) and event.kind == "state"]
    assert {state.round for state in states} >= {1, 3}
    for view in ("server", "outsider"):
        for round in (2, 3):
            with_states, without = seen_by(plan, states, round, view=view), seen_by(plan, (), round, view=view)
            for first, second in zip(with_states.models, without.models, strict=True):
                assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_aggregate_is_weighted_as_the_server_weighs_it() -> None:
    method = {"name": "fedavg", "weighting": "size"}
    partition = {"name": "dirichlet", "alpha": 0.1}
    plan = load_plan(tiny_spec(method=method, partition=partition, clients=6, sampled=6, sampling="all", rounds=1))
    with ThreadTeam(1) as team:
        after = train_round(plan, first_state(plan), 1, team).server
    seen = seen_by(plan, round=1, view="aggregate").models[1]
    for name in after:
        torch.testing.assert_close(seen[name], after[name], rtol=1e-4, atol=1e-6)


def test_the_error_of_a_metric_names_it() -> None:
    class FailingMetric(ScoreMetric):
        """A metric of another package."""

        better = "higher"

        def measure(self, scores: Tensor, members: Tensor) -> float:
            raise ZeroDivisionError("div")

    METRICS.add("broken", title="a test metric", source="tests")(FailingMetric)
    try:
        with pytest.raises(RunFailed, match="metric broken: ZeroDivisionError: div"):
            scored(tiny_spec())
    finally:
        del METRICS._parts["broken"]


def test_the_public_name_runs_attacks_of_any_goal() -> None:
    events = list(engine.attack(engine.MembershipSpec(run=tiny_spec())))
    assert any(isinstance(event, Scored) for event in events)
    with pytest.raises(BadInput, match="make it a MembershipSpec"):
        engine.AttackSpec(run=tiny_spec(), attack="loss-threshold")
    with pytest.raises(BadInput, match="must be an AttackSpec or a MembershipSpec, got RunSpec"):
        engine.attack(tiny_spec())  # type: ignore[arg-type]


def test_an_attack_does_not_learn_the_seed_of_the_run() -> None:
    class Curious(LossThreshold):
        def shadows(self, spec: Any) -> tuple[Any, ...]:
            seeds.append(spec.seed)
            return ()

    seeds: list[int] = []
    ATTACKS.add("curious", title="a test attack", source="tests")(Curious)
    try:
        for seed in (0, 3):
            refuse_membership(MembershipSpec(run=tiny_spec(seed=seed), attack="curious"))
    finally:
        del ATTACKS._parts["curious"]
    assert seeds == [1, 0]


@pytest.mark.parametrize(("sampled", "unit"), [(1, "record"), (1, "user"), (2, "user")])
def test_the_observer_is_no_member_of_its_own_view(sampled: int, unit: str) -> None:
    run = tiny_spec(clients=10, sampled=sampled, sampling="fixed")
    with pytest.raises(BadInput, match=r"no client but the observer took part|both groups need at least 2"):
        refuse_membership(MembershipSpec(run=run, view="client", unit=unit, round="first"))


def test_an_attack_sees_no_member_no_owner_and_no_seed() -> None:
    """With the members, an attack could choose its scores by them."""
    assert {field.name for field in fields(Sight)} == {"view", "rounds", "logits", "labels", "own", "members"}
    sights: list[Sight] = []

    class Spy(MembershipAttack):
        def score(self, sight: Sight, shadows: Sequence[Sight], context: AttackContext) -> Tensor:
            sights.append(sight)
            assert not shadows and context.seeds == own_seeds(spec, "attack")
            return sight.logits[-1].amax(1)

    ATTACKS.add("spy", title="a test attack", source="tests")(Spy)
    try:
        spec = MembershipSpec(run=tiny_spec(), attack="spy", seed=5)
        scored(tiny_spec(), attack="spy", seed=5)
    finally:
        del ATTACKS._parts["spy"]
    (sight,) = sights
    assert sight.members is None and sight.own is None and sight.logits.shape == (1, len(sight.labels), 10)


def test_the_streams_of_the_attack_the_pool_and_the_run_differ() -> None:
    """With the seeds of the pool, an attack could compute its order; with those of the run, its noise."""
    requests = [(tiny_spec(), 0), (tiny_spec(), 1), (tiny_spec(rounds=3), 0)]
    specs = [MembershipSpec(run=run, seed=seed) for run, seed in requests]
    seeds = [own_seeds(spec, purpose).seed for spec in specs for purpose in ("attack", "pool")]
    assert len({*seeds, 0, 1, tiny_spec().seed}) == len(seeds) + 3
    plan = load_plan(tiny_spec())
    first, second = (pool_of(plan, seed=seed) for seed in (0, 1))
    assert not torch.equal(first.members, second.members)


def test_a_stopped_attack_ends_without_a_result() -> None:
    events = list(membership(MembershipSpec(run=tiny_spec()), stop=lambda: True))
    assert isinstance(events[0], Started) and not any(isinstance(event, Scored | Finished) for event in events)


def test_the_server_knows_what_it_sent_to_this_client_where_it_sends_each_another_model() -> None:
    method = {"name": "fedceo", "every": 2, "noise": 1.0}
    plan = load_plan(tiny_spec(method=method, rounds=3, sampling="fixed"))
    states = [first_state(plan)]
    exchanges: list[Exchange] = []
    with ThreadTeam(1) as team:
        for round in (1, 2, 3):
            states.append(train_round(plan, states[-1], round, team, watch=exchanges.append))
    packets = [packet.model["head.weight"] for packet in exchanges[-1].packets]
    assert not torch.equal(packets[1], states[2].server["head.weight"])
    client = exchanges[-1].seats[1].client
    assert torch.equal(seen_by(plan, round=3, view="server", client=client).models[0]["head.weight"], packets[1])


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
        (
            {"run": {"clients": 5, "sampled": 5}, "unit": "user"},
            "attack: unit: 5 of 5 clients took part, and both groups",
        ),
        (
            {"run": {"sampling": "poisson", "sampled": 1, "clients": 40, "seed": 5}, "round": 1, "view": "server"},
            "attack: round: no client took part in round 1",
        ),
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
    run = tiny_spec(method=METHODS[method]().trial(), model={"name": "mlp", "hidden": 8}, rounds=1)
    spec = MembershipSpec(run=run, attack=name)
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
