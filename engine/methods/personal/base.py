"""The base class of personal methods: part of every model stays on its client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import ClassVar, Literal

from pydantic import Field

from engine.capabilities import Family, Variant
from engine.compute import noise
from engine.compute.context import ClientContext
from engine.methods.user_level.base import UserLevel
from engine.records import (
    ExtraWork,
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

FAMILY = Family("stays on the device", "purple")


class Personal(UserLevel):
    """Part of every model stays on its client. Only the rest is clipped, noised and averaged."""

    stateful: ClassVar[bool] = True
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "the server adds the noise",
            "As published: the server sees every upload without noise, and adds the noise to their mean.",
            {"noise-split": "server"},
            suggested=True,
        ),
        *(replace(variant, suggested=False) for variant in UserLevel.variants),
    )

    noise_split: Literal["server", "paper", "full-local"] = Field(  # type: ignore[assignment]
        "server",
        title="noise split",
        description="server: the server adds the noise, as published; paper: the clients of a round share one "
        "portion; full-local: each adds a full one.",
    )
    head_epochs: int = Field(
        1, ge=0, le=1000, title="head epochs", description="Epochs in which a client trains only its own last layer."
    )
    head_lr: float = Field(0.1, gt=0, le=100, title="head step", description="Learning rate of these epochs.")

    def work(self, world: World, rounds: int) -> ExtraWork:
        steps = self.head_epochs * -(-median(world.sizes) // world.local.batch)
        return ExtraWork(local_steps=rounds * world.sampled * steps)

    def trial(self) -> Personal:
        return self.with_(head_epochs=min(1, self.head_epochs))

    def head_contexts(self, contexts: Sequence[ClientContext]) -> list[ClientContext]:
        """The contexts for the epochs that train only the last layer. They report no progress."""
        local = replace(contexts[0].world.local, epochs=self.head_epochs, lr=self.head_lr)
        world = replace(contexts[0].world, local=local)

        def silent(fraction: float, numbers: dict[str, float]) -> None:
            """Report no progress."""

        return [replace(context, world=world, phase="head-", on_progress=silent) for context in contexts]

    def upload_std(self, cohort: int) -> float:
        return 0.0 if self.noise_split == "server" else super().upload_std(cohort)

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        merged, memory = super().merge(server, uploads, memory, context)
        if self.noise_split != "server":
            return merged, memory
        shared = self.shared_weights(merged, context.world)
        std = self.noise * self.clip * self.server_step / context.world.sampled
        return {**merged, **noise.gaussian_added(shared, std, context.noise())}, memory

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        if self.noise_split != "server":
            return super().releases(world, round, cohort)
        outside = Release("outsider", Gaussian(self.noise, world.rate), sampling=world.sampling)
        to_clients = replace(outside, view="client")
        if not cohort:
            return outside, to_clients
        law = NoNoise("the server adds the noise itself, after it has seen every upload")
        return Release("server", law, cohort), Release("aggregate", law, cohort), outside, to_clients

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        protocol = super().protocol(world, seat, view)
        if self.noise_split != "server":
            return protocol
        if view in ("server", "aggregate") or not self.noise:
            return replace(protocol, noise="none")
        return replace(protocol, noise="gaussian", std=self.noise * self.clip * self.server_step / world.sampled)

    def promise(self, world: World) -> Guarantee:
        scope = (
            "it covers what others learn of a client, and nothing is promised for personal models that are published"
        )
        if self.noise_split != "server":
            guarantee = super().promise(world)
            return replace(guarantee, reason=f"{guarantee.reason}; {scope}")
        return Guarantee("formal-other-view", f"the server adds the noise after it has seen every upload; {scope}")
