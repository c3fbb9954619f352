"""The contract of an attack: it sees one exposure and nothing else, and says its guesses as they form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from engine.descent import newton
from engine.inversion import Riddle
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


class ByCurvature(Attack):
    """What attacks share that walk by L-BFGS on the squared distance."""

    iterations: int = Field(300, ge=1, le=10_000, title="iterations", description="Times twenty steps of L-BFGS.")
    lr: float = Field(1.0, gt=0, le=10, title="step", description="Share of each step that is taken.")
    gain: float = Field(
        1e5,
        gt=0,
        le=1e12,
        title="gain",
        description="What the distance is multiplied by, so that L-BFGS does not take its curvature for zero.",
    )
    search: bool = Field(
        True,
        title="line search",
        description="Tries several lengths for each step, which keeps it from diverging; the paper does not.",
    )
    tolerance: float = Field(
        1e-11, ge=0, le=1, title="tolerance", description="Ends once no more than this share of the upload is open."
    )

    def walk(self, riddle: Riddle, start: Tensor, belief: Tensor | None = None) -> Iterator[Guess]:
        return newton(
            riddle,
            start,
            belief,
            iterations=self.iterations,
            lr=self.lr,
            gain=self.gain,
            search=self.search,
            tolerance=self.tolerance,
        )


ATTACKS: Shelf[Attack] = Shelf("engine.attacks", "attack")
