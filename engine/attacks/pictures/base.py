"""The contract of picture attacks, which reconstruct pictures from one exposure.

Privacy: an attack never receives the original pictures, a data set, a metric or a seed of the run. With any of them it
could check its guesses against the truth, and its result would not show what the upload leaks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from engine.attacks.base import Attack, Goal
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess, Packet, World
from engine.seeds import Seeds

Prior = Mapping[str, Tensor]  # what an attack learned from public pictures


class PictureAttack(Attack):
    """A way to reconstruct pictures from what an adversary received."""

    goal: ClassVar[Goal] = "pictures"
    chance: ClassVar[bool] = True  # whether another restart gives another result
    # A converged attack leaves at most this share of the upload unexplained, relative to plain grey pictures. At that
    # share its guess is the victim's picture. Squared distances fall to rounding errors. Angles stay higher, because
    # their objectives also contain a smoothness term.
    leaves: ClassVar[float] = 3e-4
    # whether the classes of its guesses can be believed: the matching test compares pictures of one class
    names_classes: ClassVar[bool] = True

    def result_format(self, spec: Any) -> int:
        """3 in the view of another client: it subtracts its own upload, and is of the round that is attacked.

        Also 3 for an outsider of rounds with one client, who knows the length of its upload. 4 where a probe with noise
        has the uploads of others or a model that the server changed: these have noise of their own.
        """
        view = getattr(spec, "view", None)
        run = getattr(spec, "run", None)
        if run is not None and run.format > 1 and (self.malicious or view in ("aggregate", "outsider", "client")):
            return 4
        alone = view == "outsider" and spec.run.sampled == 1
        return max(super().result_format(spec), 3 if view == "client" or alone else 1)

    @abstractmethod
    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        """The guesses of one restart; each improves the attack's own objective, which does not contain the truth.

        The module belongs to this thread. The seeds of the context are the attacker's, not the run's.
        """

    def misfit(self, world: World, module: nn.Module) -> str:
        """Why this attack cannot work on the model; empty if it can."""
        del world, module
        return ""

    def learn(self, public: Tensor, seeds: Seeds) -> Iterator[tuple[float, Prior]]:
        """Learns from public pictures (n, channels, height, width); yields the share of work done and the prior."""
        del public, seeds
        yield 1.0, {}

    def tamper(self, module: nn.Module, packet: Packet, world: World) -> tuple[nn.Module, Packet]:
        """The model and packet that a malicious server sends instead, equal at every call; by default unchanged."""
        del world
        return module, packet
