"""An attacker by three answers in place of a list of attacks: what it may do, what it knows, how long it searches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from engine.capabilities import HasIterations
from engine.errors import LeakLensError


@dataclass(frozen=True)
class AttackChoice:
    """What an attacker is and has. Each attack needs some of it."""

    changes: bool = False  # the server changes the model that it sends
    learns: bool = False  # the attacker has similar public pictures
    searches: bool = False  # it searches step by step; otherwise it answers at once

    def allows(self, needs: AttackChoice) -> bool:
        """Whether this attacker can use an attack with these needs.

        A server that changes the model uses only attacks that read such a model: the others need an honest one.
        """
        return needs.changes == self.changes and needs.learns <= self.learns and needs.searches <= self.searches


# From the least to the most, so that the first choice that describes some attacks needs no more than they do.
CHOICES = tuple(AttackChoice(*answers) for answers in product((False, True), repeat=3))


def needs(attack: str) -> AttackChoice:
    """What an attack needs, as its class declares it."""
    from engine.specs.run import SHELVES

    part = SHELVES["attack"][attack]
    return AttackChoice(part.malicious, bool(part.learns), issubclass(part, HasIterations))


def fitting(fits: Sequence[str], choice: AttackChoice) -> tuple[str, ...]:
    """The attacks that such an attacker uses: all of those that fit the run and that it can run."""
    return tuple(name for name in fits if choice.allows(needs(name)))


def choice_of(fits: Sequence[str], attacks: Collection[str]) -> AttackChoice | None:
    """The attacker who would use exactly these attacks. None if a visitor chose them one by one."""
    for choice in CHOICES:
        if attacks and set(fitting(fits, choice)) == set(attacks):
            return choice
    return None


def described(attacks: Collection[str]) -> AttackChoice:
    """The least attacker who could use all of these attacks."""
    every = [needs(name) for name in known(attacks)]
    return AttackChoice(
        any(need.changes for need in every), any(need.learns for need in every), any(need.searches for need in every)
    )


def known(attacks: Collection[str]) -> tuple[str, ...]:
    """Those of these attacks that are on the shelf."""
    kept = []
    for name in attacks:
        try:
            needs(name)
        except LeakLensError:
            continue
        kept.append(name)
    return tuple(kept)


def upload_for(upload: str, choice: AttackChoice) -> str:
    """The kind of upload that such an attacker attacks: that of a client to a server that cheats, or to one that
    watches. Listed pictures are read by both."""
    if upload == "listed":
        return upload
    return "cheat" if choice.changes else "ordinary"
