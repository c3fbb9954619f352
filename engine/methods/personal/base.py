"""What personal methods share: part of every model stays with its client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from engine.compute import noise
from engine.compute.context import ClientContext
from engine.methods.user_level.base import UserLevel
from engine.records import (
    Gaussian,
    Guarantee,
    Memory,
    NoNoise,
    Protocol,
    Release,
    Seat,
    Upload,
    View,
    Weights,
    World,
)


class Personal(UserLevel):
    """Part of every model stays with its client: only the rest is clipped, noised and averaged."""

    noise_split: Literal["server", "paper", "full-local"] = Field(  # type: ignore[assignment]
        "server",
        title="noise split",
        description="server: the server adds the noise, as published; paper: the clients of a round share one "
        "portion; full-local: each adds a whole one.",
    )
    head_epochs: int = Field(
        1, ge=0, le=1000, title="head epochs", description="Epochs in which a client trains its own last layer alone."
    )
    head_lr: float = Field(0.1, gt=0, le=100, title="head step", description="Learning rate of these epochs.")

    def head_desks(self, contexts: Sequence[ClientContext]) -> list[ClientContext]:
        """The same contexts, for the epochs of the last layer alone."""
        local = replace(contexts[0].world.local, epochs=self.head_epochs, lr=self.head_lr)
        world = replace(contexts[0].world, local=local)
        return [
            replace(context, world=world, phase="head-", note=lambda fraction, numbers: None) for context in contexts
        ]

    def upload_std(self, cohort: int) -> float:
        return 0.0 if self.noise_split == "server" else super().upload_std(cohort)

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        merged, memory = super().merge(server, uploads, memory, context)
        if self.noise_split != "server":
            return merged, memory
        drawn = noise.gaussian(self.common(server, context.world), self.noise * self.clip, context.rng("noise"))
        return self.moved(merged, drawn, self.server_step / context.world.sampled), memory

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        if self.noise_split != "server":
            return super().releases(world, round, cohort)
        outside = Release("outsider", Gaussian(self.noise, world.rate), sampling=world.sampling)
        bare = NoNoise("the server adds the noise itself, after it has seen every upload")
        seen = (Release("server", bare, tuple(cohort)), Release("aggregate", bare, tuple(cohort))) if cohort else ()
        return (*seen, outside, replace(outside, view="client"))

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        told = super().protocol(world, seat, view)
        if self.noise_split != "server" or view in ("server", "aggregate") or not self.noise:
            return replace(told, noise="none") if self.noise_split == "server" else told
        return replace(told, noise="gaussian", std=self.noise * self.clip * self.server_step / world.sampled)

    def promise(self, world: World) -> Guarantee:
        kept = "it covers what others learn of a client, and nothing is promised for personal models that are published"
        if self.noise_split != "server":
            told = super().promise(world)
            return replace(told, reason=f"{told.reason}; {kept}")
        return Guarantee("formal-other-view", f"the server adds the noise after it has seen every upload; {kept}")
