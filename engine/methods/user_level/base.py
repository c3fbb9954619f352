"""The contract of methods that protect a whole client: clip its update, noise it, and what each view learns of that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from engine.compute import noise, weights
from engine.compute.context import ClientContext
from engine.methods.averaging.base import Noised, step_field
from engine.records import (
    Client,
    Gaussian,
    Guarantee,
    Memory,
    Protocol,
    Release,
    Seat,
    Upload,
    View,
    Weights,
    World,
)


class UserLevel(Noised):
    """Each client shortens its update to a bound and adds noise before it leaves."""

    noise_split: Literal["paper", "full-local"] = Field(
        "paper",
        title="noise split",
        description="paper: the clients of a round share one portion of noise; full-local: each adds a whole one.",
    )
    server_step: float = step_field(0.1)

    def unit(self) -> Literal["record", "user"] | None:
        return "user"

    def upload_std(self, cohort: int) -> float:
        """The noise on one upload: clients are told |S|, so that together they always add the same."""
        return self.noise * self.clip / (math.sqrt(cohort) if self.noise_split == "paper" else 1.0)

    def upload(self, client: Client, start: Weights, end: Weights, context: ClientContext) -> Upload:
        clipped = weights.clip(weights.subtract(end, start), self.clip)
        return Upload(
            client.id,
            "update",
            noise.gaussian_added(clipped, self.upload_std(context.seat.cohort), context.rng("noise")),
        )

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads and self.noise_split == "paper":  # an empty round must look like any other
            common = self.common(server, context.world)
            alone = noise.gaussian(common, self.noise * self.clip, context.rng("noise"))
            return self.moved(server, alone, self.server_step / context.world.sampled), memory
        return super().merge(server, uploads, memory, context)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        there = set(cohort)
        absent = tuple(client for client in range(world.clients) if client not in there)
        told = self.full_local if self.noise_split == "full-local" else self.shared
        return told(world, tuple(cohort), absent)

    def shared(self, world: World, who: tuple[int, ...], absent: tuple[int, ...]) -> tuple[Release, ...]:
        """The clients of a round add one portion together; the protected client itself always adds its part."""
        # an outsider does not know |S|, so its number may not depend on it
        spread = Gaussian(self.noise * math.sqrt(max(world.honest, 1 / world.clients)), world.rate)
        # with dishonest clients the noise of a round varies with who is there: the number is that of the average round
        rests = "" if world.honest == 1 else "approximation"
        outside = Release("outsider", spread, sampling=world.sampling, bound=rests)
        watched = replace(outside, view="client", observers=absent)
        if not who:
            return outside, watched
        part = 1 / len(who)
        together = Gaussian(self.noise * math.sqrt(max(part, world.honest)))
        but_one = Gaussian(self.noise * math.sqrt(max(part, world.honest - part)))  # a participant knows its own noise
        return (
            Release("server", Gaussian(self.noise / math.sqrt(len(who))), who),
            Release("aggregate", together, who),
            outside,
            *((Release("client", but_one, who, observers=who),) if len(who) > 1 else ()),
            watched,
        )

    def full_local(self, world: World, who: tuple[int, ...], absent: tuple[int, ...]) -> tuple[Release, ...]:
        """Every client adds a whole portion: the noise of the sum tells |S|, so nobody's view is amplified."""
        if not who:
            return ()
        honest = world.honest * len(who)
        together = Gaussian(self.noise * math.sqrt(max(1.0, honest)))
        but_one = Gaussian(self.noise * math.sqrt(max(1.0, honest - 1)))
        return (
            Release("server", Gaussian(self.noise), who),
            Release("aggregate", together, who),
            Release("outsider", together, who, bound="upper bound"),
            Release("client", but_one, who, observers=who, bound="upper bound"),
            Release("client", together, who, observers=absent, bound="upper bound"),
        )

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return Protocol(**self.noised_protocol(world, seat, view, "whole-update", self.upload_std))

    def promise(self, world: World) -> Guarantee:
        if self.noise_split == "full-local":
            return Guarantee("formal", "every client adds the whole noise itself, so it holds against the server too")
        whom = "who only see the sum" if world.sampling == "fixed" else "outside"
        return Guarantee(
            "formal-other-view",
            f"the clients of a round share one portion of noise: it holds against those {whom}, "
            "but the server the paper names sees every upload with only 1/√|S| of it",
        )
