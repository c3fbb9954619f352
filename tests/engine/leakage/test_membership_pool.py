"""Members and others differ in nothing but whether they were used: not in place, class, count or owner."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.compute.threads import ThreadTeam
from engine.leakage.membership import (
    MOST_OF_CLIENT,
    build_pool,
    by_client,
    judge,
)
from engine.specs.attack import MembershipSpec
from engine.training.plan import load_plan
from engine.training.rounds import Exchange, first_state, train_round
from tests.engine.leakage.pools import places_of, pool_of, seen_by
from tests.engine.makers import tiny_spec


def test_members_are_training_records_of_clients_that_took_part_and_the_others_test_records() -> None:
    plan = load_plan(tiny_spec(clients=40, sampled=2, sampling="fixed"))
    took_part = {client for round in (1, 2) for client in plan.cohort(round)}
    pool = pool_of(plan)
    assert places_of(plan, pool, True) <= {int(place) for client in took_part for place in plan.train[client]}
    assert len(places_of(plan, pool, False)) > 100
    assert {*pool.owners[pool.members].tolist()} == took_part and len(took_part) < 10
    one_round = pool_of(plan, view="aggregate")
    assert {*one_round.owners[one_round.members].tolist()} == set(plan.cohort(2))
    server = pool_of(plan, view="server", client=plan.cohort(2)[1])
    assert {*server.owners[server.members].tolist()} == {plan.cohort(2)[1]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["dp-fedavg", {"name": "fedsgd", "batches": "one"}, {"name": "fedsgd", "batches": "every"}]
)
@pytest.mark.parametrize("view", ["server", "outsider", "aggregate"])
def test_records_that_no_upload_used_are_no_members(method: Any, view: str) -> None:
    partition = {"name": "dirichlet", "alpha": 0.3}
    plan = load_plan(tiny_spec(method=method, clients=30, sampled=4, batch=20, partition=partition))
    exchanges: list[Exchange] = []
    state = first_state(plan)
    with ThreadTeam(1) as team:
        for round in (1, 2):
            state = train_round(plan, state, round, team, watch=exchanges.append)
    seen = seen_by(plan, view=view)
    used: set[int] = set()
    first = next(exchange for exchange in exchanges if exchange.seats and exchange.seats[0].round == 2)
    for exchange in exchanges if view == "outsider" else [first]:
        for slot, seat in enumerate(exchange.seats):
            if view != "server" or slot == 0:
                places = plan.train[seat.client]
                kept = exchange.used[slot]
                used |= {*(places if kept is None else places[kept]).tolist()}
    assert {int(place) for places in seen.used.values() for place in places} == used
    pool = build_pool(MembershipSpec(run=plan.spec, view=view), plan, seen)
    assert places_of(plan, pool, True) <= used


def test_both_halves_of_a_pool_have_the_same_classes_and_share_no_record() -> None:
    partition = {"name": "dirichlet", "alpha": 0.3}
    plan = load_plan(tiny_spec(partition=partition, clients=20, sampled=4))
    for view in ("outsider", "server"):
        pool = pool_of(plan, view=view)
        inside, outside = (torch.bincount(pool.labels[pool.members == side], minlength=10) for side in (True, False))
        assert torch.equal(inside, outside) and int(inside.sum()) > 20
        rows = pool.x.flatten(1)
        assert len(torch.unique(rows[~pool.members], dim=0)) == int((~pool.members).sum())


@pytest.mark.parametrize("unit", ["record", "user"])
@pytest.mark.parametrize("order", ["place", "label", "block"])
def test_the_order_of_a_pool_says_nothing(unit: str, order: str) -> None:
    plan = load_plan(tiny_spec(clients=40, sampled=6, sampling="fixed"))
    pool = pool_of(plan, unit=unit)
    count = len(pool.labels)
    places = torch.arange(count).double()
    scores = {"place": places, "label": pool.labels.double(), "block": (places // 50)}[order]
    low, high = judge(MembershipSpec(run=plan.spec, unit=unit), 2, None, scores, pool).interval
    assert low - 0.05 <= 0.5 <= high + 0.05


def test_the_observers_own_records_are_no_members_of_its_view() -> None:
    plan = load_plan(tiny_spec(clients=6, sampled=6, sampling="all"))
    assert 5 not in seen_by(plan, view="client").used and 5 in seen_by(plan, view="outsider").used


def test_clients_are_compared_with_clients_that_never_took_part() -> None:
    plan = load_plan(tiny_spec(clients=40, sampled=6, sampling="fixed"))
    took_part = {client for round in (1, 2) for client in plan.cohort(round)}
    pool = pool_of(plan, unit="user")
    assert {*pool.owners[pool.members].tolist()} == took_part
    assert {*pool.owners[~pool.members].tolist()} == set(range(40)) - took_part
    assert set(torch.bincount(pool.owners).tolist()) == {MOST_OF_CLIENT}


@pytest.mark.parametrize("view", ["outsider", "aggregate"])
def test_every_client_is_scored_by_equally_many_records(view: str) -> None:
    """A mean of two records varies more than one of 50, which named 44 % of the members at 10 % false alarms."""
    method = {"name": "fedsgd", "batches": "one"}
    plan = load_plan(tiny_spec(method=method, clients=40, sampled=6, sampling="fixed", batch=2))
    counts = torch.bincount(pool_of(plan, unit="user", view=view).owners)
    assert set(counts[counts > 0].tolist()) == {2}


def test_classes_that_both_halves_share_are_no_chance() -> None:
    """Scores that follow the class alone: with as many of each class, the area is .5 without any doubt."""
    plan = load_plan(tiny_spec())
    pool = pool_of(plan)
    chance = torch.randn(len(pool.labels), generator=torch.Generator().manual_seed(0)) / 10
    spec = MembershipSpec(run=plan.spec)
    by_class = judge(spec, 2, None, 10.0 * pool.labels + chance, pool).interval
    alone = judge(spec, 2, None, chance, pool).interval
    assert by_class[1] - by_class[0] < (alone[1] - alone[0]) / 3


def test_a_large_pool_is_cut_to_the_limit_and_keeps_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.leakage.membership.MOST_RECORDS", 60)
    pool = pool_of(load_plan(tiny_spec()))
    for side in (True, False):
        labels = pool.labels[pool.members == side]
        assert len(labels) == 60 and len(labels.unique()) == 10


@pytest.mark.slow
def test_scores_that_know_nothing_are_judged_as_chance() -> None:
    plan = load_plan(tiny_spec())
    spec = MembershipSpec(run=plan.spec)
    pool = pool_of(plan)
    inside = 0
    for seed in range(60):
        scores = torch.randn(len(pool.labels), generator=torch.Generator().manual_seed(seed))
        low, high = judge(spec, 2, None, scores, pool).interval
        inside += low <= 0.5 <= high
    assert inside >= 53  # 95 % of 60, and chance


def test_a_client_has_the_mean_score_of_its_records() -> None:
    plan = load_plan(tiny_spec(clients=8, sampled=3, sampling="fixed"))
    pool = pool_of(plan, unit="user")
    # skewed, so that the median is not the mean
    skewed = torch.randn(
        len(pool.owners), generator=torch.Generator().manual_seed(0)
    ).exp()  # its median is not its mean
    for client in range(8):
        own = pool.owners == client
        skewed[own] -= skewed[own].mean()
    scores = pool.owners.double() + skewed
    means, members = by_client(scores, pool)
    owners = [*pool.owners[pool.members].unique().tolist(), *pool.owners[~pool.members].unique().tolist()]
    assert means.tolist() == pytest.approx(owners, abs=1e-3) and len(owners) == 8
    assert members.tolist() == [client in pool.owners[pool.members] for client in owners]
