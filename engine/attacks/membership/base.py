"""The contract of membership attacks, which score how probable it is that a record was in the training data.

Privacy: an attack sees what its observer sees, and records that anyone could hold. It never learns which of them were
in the training data. With that it could choose its score by the truth, and its result would show nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from engine.attacks.base import Attack, Goal
from engine.compute.context import AttackContext
from engine.records import Sight


class MembershipAttack(Attack):
    """A way to tell members of the training data from other records of the same law."""

    goal: ClassVar[Goal] = "membership"

    def shadows(self, spec: Any) -> tuple[Any, ...]:
        """The runs that the attacker trains itself, made by `spec.with_(...)`. Most attacks need none."""
        del spec
        return ()

    @abstractmethod
    def score(self, sight: Sight, shadows: Sequence[Sight], context: AttackContext) -> Tensor:
        """One number for each record of the pool (pool,). A higher one means: more probably in the training data."""
