"""The contract of an attack: it sees one exposure and nothing else, and says its guesses as they form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from engine.desk import Desk
from engine.part import Part
from engine.records import Exposure
from engine.registry import Shelf


@dataclass(frozen=True)
class Guess:
    """What an attack believes after some iterations: pixels in [0, 1], and how well they explain what was received."""

    iteration: int
    pictures: Tensor  # (m, channels, height, width)
    labels: Tensor  # (m,)
    loss: float


class Attack(Part):
    """A way to turn what an adversary received back into pictures."""

    @abstractmethod
    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Tensor | None, desk: Desk) -> Iterator[Guess]:
        """Guesses, better and better by the attack's own objective: the truth is not in reach."""


ATTACKS: Shelf[Attack] = Shelf("engine.attacks", "attack")
