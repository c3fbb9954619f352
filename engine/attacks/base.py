"""The contract of an attack: it sees one exposure and nothing else, and says its guesses as they form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from torch import Tensor, nn

from engine.part import Part
from engine.records import Exposure, Guess, Packet, World
from engine.registry import Shelf
from engine.seeds import Seeds

Prior = Mapping[str, Tensor]  # what an attack learnt from public pictures before it saw anything


class Attack(Part):
    """A way to turn what an adversary received back into pictures."""

    malicious: ClassVar[bool] = False  # whether the server must send a model that it tampered with
    chance: ClassVar[bool] = True  # whether another restart gives another answer
    # What a converged attack may leave open, of what plain grey would: so little that the picture is the victim's.
    # Squared distances go down to rounding; angles are held up by the smoothness that is asked for beside them.
    leaves: ClassVar[float] = 3e-4
    learns: ClassVar[tuple[str, ...]] = ()  # fields that `learn` depends on; none: it learns nothing

    @abstractmethod
    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        """One restart's guesses, better and better by its own objective: the truth is not in reach.

        The module is this thread's own; the seeds are the attacker's, not the run's.
        """

    def misfit(self, world: World, module: nn.Module) -> str:
        """Why this attack cannot work on such a model, empty if it can."""
        del world, module
        return ""

    def learn(self, public: Tensor, seeds: Seeds) -> Iterator[tuple[float, Prior]]:
        """What is learnt once from public pictures (n, channels, height, width), and how much of that is done."""
        del public, seeds
        yield 1.0, {}

    def tamper(self, module: nn.Module, packet: Packet, world: World) -> tuple[nn.Module, Packet]:
        """What a malicious server would send instead, the same at every call; one that only looks changes nothing."""
        del world
        return module, packet


ATTACKS: Shelf[Attack] = Shelf("engine.attacks", "attack")
