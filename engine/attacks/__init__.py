"""The shelf of attacks: ways to learn about clients' data from what an adversary received."""

from engine.attacks.base import ATTACKS, Attack, Goal

__all__ = ["ATTACKS", "Attack", "Goal"]
