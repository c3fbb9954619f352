"""The base class of methods that protect a whole client: clip, noise, and what is released to each view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from engine.capabilities import Family, Variant, server_step_field
from engine.compute import noise, weights
from engine.compute.context import ClientContext
from engine.methods.averaging.base import Noised
from engine.records import (
    AllBut,
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

FAMILY = Family("noise on updates", "blue")


class UserLevel(Noised):
    """Each client clips its update to a bound and adds noise before the upload."""

    variants: ClassVar[tuple[Variant, ...]] = (
        Variant(
            "the clients share the noise",
            "Together the clients of a round add one portion of noise, which hides a client from outsiders.",
            {"noise-split": "paper"},
        ),
        Variant(
            "each client adds all the noise",
            "Each upload carries the whole noise, which hides a client from the server too.",
            {"noise-split": "full-local"},
            suggested=True,
        ),
    )

    noise_split: Literal["paper", "full-local"] = Field(
        "paper",
        title="noise split",
        description="paper: the clients of a round share one portion of noise; full-local: each adds a full one.",
    )
    server_step: float = server_step_field(0.1)

    def unit(self) -> Literal["record", "user"] | None:
        return "user"

    def upload_std(self, cohort: int) -> float:
        """The standard deviation of the noise on one upload.

        With the split `paper` clients receive |S|, so that the noise of their sum is the same in every round.
        """
        share = math.sqrt(cohort) if self.noise_split == "paper" else 1.0
        return self.noise * self.clip / share

    def upload(self, client: Client, start: Weights, end: Weights, context: ClientContext) -> Upload:
        clipped = weights.clip(weights.subtract(end, start), self.clip)
        noisy = noise.gaussian_added(clipped, self.upload_std(context.seat.cohort), context.noise())
        return Upload(client.id, "update", noisy)

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if uploads or self.noise_split != "paper":
            return super().merge(server, uploads, memory, context)
        # Privacy (ε of an outsider): an empty round adds the noise of any other round. A round without noise would
        # show that no client took part.
        shared = self.shared_weights(server, context.world)
        std = self.noise * self.clip * self.server_step / context.world.sampled
        return {**server, **noise.gaussian_added(shared, std, context.noise())}, memory

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        absent = AllBut(cohort)
        if self.noise_split == "full-local":
            return self.full_noise_releases(world, cohort, absent)
        return self.shared_noise_releases(world, cohort, absent)

    def shared_noise_releases(self, world: World, cohort: Sequence[int], absent: AllBut) -> tuple[Release, ...]:
        """The clients of a round add one portion together. The protected client always adds its own part."""
        # Privacy (ε of an outsider): an outsider does not know |S|, so its law must not depend on |S|.
        outside_law = Gaussian(self.noise * math.sqrt(max(world.honest, 1 / world.clients)), world.rate)
        bound = _bound(world)
        outside = Release("outsider", outside_law, sampling=world.sampling, bound=bound)
        to_absent = replace(outside, view="client", observers=absent)
        if not cohort:
            return outside, to_absent
        part = 1 / len(cohort)
        sum_law = Gaussian(self.noise * math.sqrt(max(part, world.honest)))
        releases = [
            Release("server", Gaussian(self.noise / math.sqrt(len(cohort))), cohort),
            Release("aggregate", sum_law, cohort, bound=bound),
            outside,
        ]
        if len(cohort) > 1:
            # A participant can subtract its own noise.
            participant_law = Gaussian(self.noise * math.sqrt(max(part, world.honest - part)))
            releases.append(Release("client", participant_law, cohort, observers=cohort, bound=bound))
        return (*releases, to_absent)

    def full_noise_releases(self, world: World, cohort: Sequence[int], absent: AllBut) -> tuple[Release, ...]:
        """Every client adds a full portion. The noise of the sum reveals |S|, so sampling amplifies no view."""
        if not cohort:
            return ()
        bound = _bound(world)
        hidden = bound or "upper bound"
        honest = world.honest * len(cohort)
        sum_law = Gaussian(self.noise * math.sqrt(max(1.0, honest)))
        participant_law = Gaussian(self.noise * math.sqrt(max(1.0, honest - 1)))  # it can subtract its own noise
        return (
            Release("server", Gaussian(self.noise), cohort),
            Release("aggregate", sum_law, cohort, bound=bound),
            Release("outsider", sum_law, cohort, bound=hidden),
            Release("client", participant_law, cohort, observers=cohort, bound=hidden),
            Release("client", sum_law, cohort, observers=absent, bound=hidden),
        )

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return Protocol(**self.noised_protocol(world, seat, view, "whole-update", self.upload_std))

    def promise(self, world: World) -> Guarantee:
        if self.noise_split == "full-local":
            return Guarantee("formal", "every client adds the whole noise itself, so it holds against the server too")
        observers = "who only see the sum" if world.sampling == "fixed" else "outside"
        return Guarantee(
            "formal-other-view",
            f"the clients of a round share one portion of noise: it holds against those {observers}, "
            "but the server the paper names sees every upload with only 1/√|S| of it",
        )


def _bound(world: World) -> str:
    """How the numbers relate to the true ε. Who is honest differs by round, and they are those of the average round."""
    return "" if world.honest == 1 else "approximation"
