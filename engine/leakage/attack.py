"""The attack of any goal: the public name `attack` runs what the spec asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.errors import refusal
from engine.events import Event
from engine.leakage import pictures
from engine.leakage.membership import membership
from engine.leakage.target import AttackResources
from engine.specs.attack import AttackSpec, BaseAttackSpec, MembershipSpec


def attack(
    spec: BaseAttackSpec,
    resources: AttackResources | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """All events of an attack. Once `stop` returns True, it ends without a result."""
    if isinstance(spec, MembershipSpec):
        return membership(spec, resources, threads=threads, device=device, stop=stop)
    if not isinstance(spec, AttackSpec):
        raise refusal("attack: spec", "must be an AttackSpec or a MembershipSpec", type(spec).__name__)
    return pictures.attack(spec, resources, threads=threads, device=device, stop=stop)
