"""A grid of attacks: every attack against every protection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec

NONE = "none"  # the column of the baseline
OF_RUN = "run"  # the column of the run as it was requested
NOISY = "udp-fedavg"  # the method of the columns with noise


@dataclass(frozen=True)
class RequestedAttack:
    """One cell of the grid: an attack, or the reason why it cannot run."""

    column: str
    attack: str
    spec: AttackSpec | None
    problem: str = ""

    @property
    def id(self) -> str:
        return "" if self.spec is None else _id(self.spec)


@lru_cache(maxsize=2000)
def _id(spec: AttackSpec) -> str:
    return spec.id
