"""Pools of members and others, made from a plan, and what an observer has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.compute.threads import ThreadTeam
from engine.events import Kept
from engine.leakage.membership import (
    Observed,
    Pool,
    build_pool,
    observed,
)
from engine.specs.attack import MembershipSpec
from engine.training.plan import LoadedPlan


def seen_by(plan: LoadedPlan, kept: Sequence[Kept] = (), round: int = 2, **fields: Any) -> Observed:
    """What an observer has after a round."""
    spec = MembershipSpec(run=plan.spec, round=round, **fields)
    with ThreadTeam(2) as team:
        steps = observed(spec, plan, kept, round, team, lambda: False)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                assert isinstance(end.value, Observed)
                return end.value


def pool_of(plan: LoadedPlan, round: int = 2, **fields: Any) -> Pool:
    seen = seen_by(plan, round=round, **fields)
    return build_pool(MembershipSpec(run=plan.spec, round=round, **fields), plan, seen)


def places_of(plan: LoadedPlan, pool: Pool, members: bool) -> set[int]:
    """Where the records of one half are in the data set they must come from, compared number by number."""
    data = plan.spec.dataset.load()
    source = data.normal_((data.train_x if members else data.test_x).clone()).flatten(1)
    index = {row.numpy().tobytes(): place for place, row in enumerate(source)}
    return {index[row.numpy().tobytes()] for row in pool.x[pool.members == members].flatten(1)}
