"""The shelf of attacks: ways to turn what an adversary received back into pictures."""

from engine.attacks.base import ATTACKS, Attack, Prior

__all__ = ["ATTACKS", "Attack", "Prior"]
