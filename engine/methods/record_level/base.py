"""The contract of methods that protect one record: DP-SGD inside every client, and what each view learns of that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from engine.compute import dp_sgd
from engine.compute.context import ClientContext
from engine.methods.averaging.base import Noised
from engine.records import (
    VIEWS,
    Client,
    Gaussian,
    Guarantee,
    Packet,
    Protocol,
    Release,
    Seat,
    View,
    Weights,
    World,
)


class RecordLevel(Noised):
    """Each client clips the gradient of every example and adds noise at every step: what it uploads is private."""

    def unit(self) -> Literal["record", "user"] | None:
        return "record"

    def fit(
        self, starts: Sequence[Packet], clients: Sequence[Client], contexts: Sequence[ClientContext]
    ) -> list[Weights]:
        def one(context: ClientContext, start: Packet, client: Client) -> Weights:
            return dp_sgd.fit_private(context, start, client, bound=self.clip, multiplier=self.noise)

        return contexts[0].team.each(one, contexts, starts, clients, progress=contexts[0].progress)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        by_size: dict[int, list[int]] = {}
        for client in cohort:
            by_size.setdefault(world.sizes[client], []).append(client)
        found: list[Release] = []
        for size, who in by_size.items():
            steps = world.local.epochs * dp_sgd.steps_per_epoch(size, world.local)
            law = Gaussian(self.noise, dp_sgd.batch_rate(size, world.local), steps)
            base = Release("server", law, tuple(who), unit="record", adjacency="add-remove", sampling="poisson")
            found += [base if view == "server" else replace(base, view=view, bound="upper bound") for view in VIEWS]
        return tuple(found)

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        size = world.sizes[seat.client]
        batch = dp_sgd.batch_rate(size, world.local) * size
        steps = world.local.epochs * dp_sgd.steps_per_epoch(size, world.local)
        # the noise of all steps, as if none had moved the path; momentum lets each one echo in those that follow
        momentum = world.local.momentum
        echoes = ((1 - momentum**left) / (1 - momentum) for left in range(1, steps + 1))
        single = world.local.lr * self.noise * self.clip / batch * math.sqrt(sum(echo**2 for echo in echoes))
        facts = self.noised_protocol(world, seat, view, "per-example", lambda cohort: single)
        drawing = "whole" if batch == size else "poisson"
        return Protocol(**facts | {"steps": steps, "batch": round(batch), "drawing": drawing})

    def promise(self, world: World) -> Guarantee:
        one = "picture" if world.pictures else "sentence"
        return Guarantee(
            "formal",
            f"the noise is added inside the client at every step; it protects one {one}, not one client, "
            f"and how many {one}s a client has is declared public",
        )
