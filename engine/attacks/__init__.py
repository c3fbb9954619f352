"""The shelf of attacks: ways to reconstruct pictures from what an adversary received."""

from engine.attacks.base import ATTACKS, Attack, Prior

__all__ = ["ATTACKS", "Attack", "Prior"]
