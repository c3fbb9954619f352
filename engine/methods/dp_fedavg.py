"""DP-FedAvg, record level: every client trains by DP-SGD (Truex 2019, as in arXiv:2302.01068).

Paper → here:  σ → noise,  C → clip (per example),  B → batch (the expected one),  q = B / n_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from engine import clipping
from engine.desk import Desk
from engine.methods.base import METHODS, Noised
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


@METHODS.add("dp-fedavg", title="DP-FedAvg (record level)", source="arXiv:2302.01068")
class DPFedAvg(Noised):
    """Each client trains with noise on every step, so that no single picture of it stands out in what it sends."""

    def unit(self) -> Literal["record", "user"] | None:
        return "record"

    def fit(self, starts: Sequence[Packet], clients: Sequence[Client], desks: Sequence[Desk]) -> list[Weights]:
        def one(desk: Desk, start: Packet, client: Client) -> Weights:
            return clipping.fit_private(desk, start, client, bound=self.clip, multiplier=self.noise)

        return desks[0].crew.each(one, desks, starts, clients, tell=desks[0].tell)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        by_size: dict[int, list[int]] = {}
        for client in cohort:
            by_size.setdefault(world.sizes[client], []).append(client)
        found: list[Release] = []
        for size, who in by_size.items():
            steps = world.local.epochs * clipping.steps_per_epoch(size, world.local)
            law = Gaussian(self.noise, clipping.batch_rate(size, world.local), steps)
            base = Release("server", law, tuple(who), unit="record", adjacency="add-remove", sampling="poisson")
            found += [base if view == "server" else replace(base, view=view, bound="upper bound") for view in VIEWS]
        return tuple(found)

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        size = world.sizes[seat.client]
        batch = clipping.batch_rate(size, world.local) * size
        steps = world.local.epochs * clipping.steps_per_epoch(size, world.local)
        # the noise of all steps, as if none had moved the path; momentum lets each one echo in those that follow
        momentum = world.local.momentum
        echoes = ((1 - momentum**left) / (1 - momentum) for left in range(1, steps + 1))
        single = world.local.lr * self.noise * self.clip / batch * math.sqrt(sum(echo**2 for echo in echoes))
        facts = self.noised_protocol(world, seat, view, "per-example", lambda cohort: single)
        drawing = "whole" if batch == size else "poisson"
        return Protocol(**facts | {"steps": steps, "batch": round(batch), "drawing": drawing})

    def promise(self, world: World) -> Guarantee:
        del world
        return Guarantee(
            "formal",
            "the noise is added inside the client at every step; it protects one picture, not one client, "
            "and how many pictures a client has is declared public",
        )
