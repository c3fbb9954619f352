"""What a run spends is computed in one pass before it starts, and equals the sum over its rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.epsilon import Epsilon
from engine.methods import METHODS
from engine.methods.record_level.dp_fedavg import DPFedAvg
from engine.privacy.sums import Sums
from engine.records import Gaussian, Release, World
from engine.seeds import Cohort
from engine.training.plan import Plan, make_plan
from engine.training.spending import Spending, counts_suffice
from tests.engine.makers import tiny_spec

UNEQUAL = {"name": "dirichlet", "alpha": 0.3}
SPLITS = [("udp-fedavg", "paper"), ("udp-fedavg", "full-local"), ("fedceo", "paper"), ("ppsgd", "server")]
NAMES = [name for name in METHODS.names() if name != "feddm"]  # it needs every class in every client, and has no ε
METHODS_TRIED: list[Any] = [*NAMES, *({"name": name, "noise_split": split} for name, split in SPLITS)]


def plan_of(method: Any, **fields: Any) -> Plan:
    return make_plan(tiny_spec(method=method, **{"rounds": 9, "partition": UNEQUAL, **fields}))


def assert_equal(answer: Epsilon, expected: Epsilon) -> None:
    assert replace(answer, value=None) == replace(expected, value=None)
    assert answer.value == (None if expected.value is None else pytest.approx(expected.value, rel=1e-12))


@pytest.mark.parametrize("method", METHODS_TRIED, ids=str)
def test_the_ledger_before_a_run_equals_that_of_its_rounds(method: Any) -> None:
    plan = plan_of(method, sampled=4)
    for answer, expected in zip(plan.answers(plan.final_ledger()), plan.answers(plan.ledger(9)), strict=True):
        assert_equal(answer, expected)


@pytest.mark.parametrize("view", ["server", "client"])
def test_the_ledger_of_a_target_equals_that_of_its_rounds(view: str) -> None:
    method = {"name": "udp-fedavg", "noise_split": "full-local"}
    plan = plan_of(method, sampled=4, target_epsilon=20.0, view=view)
    assert plan.spent is not None
    for answer, expected in zip(plan.answers(plan.spent), plan.answers(plan.ledger(9)), strict=True):
        assert_equal(answer, expected)


def test_a_budget_that_ends_between_two_doublings_keeps_the_ledger_of_its_last_round() -> None:
    whole = plan_of("udp-fedavg", sampling="all", sampled=40)
    budget = whole.ledger(6).answer("server").value
    assert budget is not None
    plan = plan_of("udp-fedavg", sampling="all", sampled=40, budget=budget * (1 + 1e-9), view="server")
    assert plan.last_round == 6 and plan.spent is not None
    assert plan.spent.answer("server").value == pytest.approx(budget, rel=1e-12)


def test_each_cohort_is_drawn_once_where_counts_suffice() -> None:
    plan = plan_of("dp-fedavg")
    drawn: list[int] = []

    def cohort(round: int) -> Cohort:
        drawn.append(round)
        return plan.cohort(round)

    Spending(plan.world, cohort).after(9, plan.method)
    assert drawn == list(range(1, 10))


class ChargedTwice(DPFedAvg):
    """A method of another package: it changes what a round releases, and not what many rounds release."""

    def releases(self, world: World, round: int, cohort: Any) -> tuple[Release, ...]:
        return 2 * super().releases(world, round, cohort)


def test_a_derived_method_is_charged_for_its_own_releases() -> None:
    plan = plan_of("dp-fedavg")
    derived = ChargedTwice()
    assert counts_suffice(plan.method) and not counts_suffice(derived)
    expected = plan.ledger(9, derived).answer("server")
    assert plan.spending.after(9, derived).answer("server") == expected
    assert (expected.value or 0) > (plan.ledger(9).answer("server").value or math.inf)


RANDOM = np.random.default_rng(0)
MASKS = RANDOM.random((700, 40)) < 0.4


@pytest.mark.parametrize("observers", [lambda mask: mask, lambda mask: ~mask], ids=["present", "absent"])
def test_pairs_added_in_blocks_equal_pairs_added_alone(observers: Callable[[np.ndarray], np.ndarray]) -> None:
    single, blocks = Sums(40), Sums(40, in_blocks=True)
    for place, mask in enumerate(MASKS):
        clients, seen_by = np.flatnonzero(mask), np.flatnonzero(observers(mask))
        for sums in (single, blocks):
            sums.add(1 / (1 + place), clients, seen_by)
            sums.add(0.5, clients, np.flatnonzero(mask))
        if place == 300:
            blocks = blocks.copy()  # in the middle of a block
    np.testing.assert_allclose(blocks.matrix(), single.matrix(), rtol=1e-13)
    np.testing.assert_allclose(blocks.for_clients(), single.for_clients(), rtol=1e-13)


def test_a_count_multiplies_the_steps() -> None:
    plan = plan_of("dp-fedavg")
    counts = np.zeros(plan.world.clients, dtype=np.intp)
    counts[[0, 1]] = 3, 1
    releases = plan.method.repeated_releases(plan.world, counts)
    assert releases is not None
    steps: dict[int, int] = {}
    for release in releases:
        if release.view == "server":
            assert isinstance(release.mechanism, Gaussian)
            for client in release.clients:  # type: ignore[union-attr]
                steps[client] = release.mechanism.steps
    single = {client: plan.method.releases(plan.world, 1, (client,))[0].mechanism.steps for client in (0, 1)}  # type: ignore[union-attr]
    assert steps == {0: 3 * single[0], 1: single[1]}
