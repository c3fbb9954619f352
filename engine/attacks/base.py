"""What all attacks share: their goal, and the kinds of upload that they read.

Privacy: an attack never receives a metric, the truth or a seed of the run. With any of them it could check its guesses,
and its result would not show what an adversary learns.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from engine.part import Part
from engine.records import UploadKind
from engine.registry import Shelf

Goal = Literal["pictures", "membership", "text"]


class Attack(Part):
    """A way to learn about clients' data from what an adversary received."""

    goal: ClassVar[Goal]
    reads: ClassVar[frozenset[UploadKind]] = frozenset({"gradient", "update"})
    malicious: ClassVar[bool] = False  # whether the server must tamper with the model that it sends
    # The fields on which learning from public data depends; empty for an attack that learns from none.
    learns: ClassVar[tuple[str, ...]] = ()

    def suited_to(self, *, normalises: bool, wide: bool) -> Self:
        """This attack with its fields at None filled for the model. The spec of an attack calls it.

        `normalises` says whether a layer of the model normalises activations, and `wide` is that of the model.
        """
        del normalises, wide
        return self


ATTACKS: Shelf[Attack] = Shelf("engine.attacks", "attack")
