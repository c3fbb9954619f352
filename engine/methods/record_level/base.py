"""The base class of methods that protect one record: DP-SGD in every client, and what is released to each view."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.capabilities import Family
from engine.compute import dp_sgd
from engine.compute.context import ClientContext
from engine.compute.sgd import StepChange
from engine.methods.averaging.base import Noised
from engine.methods.base import Method
from engine.records import (
    VIEWS,
    Client,
    Gaussian,
    Guarantee,
    Protocol,
    Release,
    Seat,
    View,
    Weights,
    World,
)
from engine.seeds import Cohort

FAMILY = Family("noise on steps", "sky")


class RecordLevel(Noised):
    """Each client clips the gradient of every example and adds noise at every step, so its upload is private."""

    def unit(self) -> Literal["record", "user"] | None:
        return "record"

    def fit(
        self,
        starts: Sequence[Weights],
        clients: Sequence[Client],
        contexts: Sequence[ClientContext],
        changes: Sequence[StepChange],
    ) -> list[Weights]:
        def fit_client(context: ClientContext, start: Weights, client: Client, change: StepChange) -> Weights:
            return dp_sgd.fit_private(context, start, client, bound=self.clip, multiplier=self.noise, extra=change)

        return contexts[0].team.each(fit_client, contexts, starts, clients, changes, progress=contexts[0].progress)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        del round
        return record_releases(
            self.noise, world, cohort, lambda size: world.local.epochs * dp_sgd.steps_per_epoch(size, world.local)
        )

    def repeated_releases(self, world: World, counts: NDArray[np.intp]) -> tuple[Release, ...] | None:
        return repeated_record_releases(self, world, counts)

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        size = world.sizes[seat.client]
        batch = dp_sgd.batch_rate(size, world.local) * size
        steps = world.local.epochs * dp_sgd.steps_per_epoch(size, world.local)
        # The noise of all steps, as if no step had changed the path. Momentum repeats each noise in all later steps.
        momentum = world.local.momentum
        repeats = ((1 - momentum**left) / (1 - momentum) for left in range(1, steps + 1))
        upload_std = world.local.lr * self.noise * self.clip / batch * math.sqrt(sum(repeat**2 for repeat in repeats))
        facts = self.noised_protocol(world, seat, view, "per-example", lambda cohort: upload_std)
        drawing = "whole" if batch == size else "poisson"
        return Protocol(**facts | {"steps": steps, "batch": round(batch), "drawing": drawing})

    def promise(self, world: World) -> Guarantee:
        return record_promise(world)


def record_promise(world: World) -> Guarantee:
    """What noise on every gradient inside a client promises."""
    record = "picture" if world.pictures else "sentence"
    return Guarantee(
        "formal",
        f"the noise is added inside the client at every step; it protects one {record}, not one client, "
        f"and how many {record}s a client has is declared public",
    )


def record_releases(
    noise: float, world: World, cohort: Sequence[int], steps: Callable[[int], int]
) -> tuple[Release, ...]:
    """What a round releases where each client adds noise to every gradient; `steps` of them for its size."""
    releases: list[Release] = []
    for size, clients in clients_by_size(world, cohort).items():
        law = Gaussian(noise, dp_sgd.batch_rate(size, world.local), steps(size))
        to_server = Release("server", law, clients, unit="record", adjacency="add-remove", sampling="poisson")
        for view in VIEWS:
            exact = view == "server"
            releases.append(to_server if exact else replace(to_server, view=view, bound="upper bound"))
    return tuple(releases)


def repeated_record_releases(method: Method, world: World, counts: NDArray[np.intp]) -> tuple[Release, ...]:
    """The releases of many rounds together, where each round releases the same about a client."""
    releases: list[Release] = []
    for count in np.unique(counts[counts > 0]).tolist():
        cohort = Cohort(np.flatnonzero(counts == count))
        for release in method.releases(world, 1, cohort):
            assert isinstance(release.mechanism, Gaussian)
            law = replace(release.mechanism, steps=count * release.mechanism.steps)
            releases.append(replace(release, mechanism=law))
    return tuple(releases)


def clients_by_size(world: World, cohort: Sequence[int]) -> dict[int, Sequence[int]]:
    """The clients of a round by how many records they have, in the order of their first client."""
    if not cohort:
        return {}
    if world.equal_sizes:
        return {world.sizes[0]: cohort}
    clients = cohort.array if isinstance(cohort, Cohort) else np.array(cohort)
    sizes = world.size_array[clients]
    distinct, first = np.unique(sizes, return_index=True)
    return {int(distinct[place]): Cohort(clients[sizes == distinct[place]]) for place in first.argsort()}
