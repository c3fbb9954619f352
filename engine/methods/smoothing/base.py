"""The base class of smoothing methods: the schedule, the slices that clients receive, and the event about it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from engine.capabilities import Family
from engine.compute import weights
from engine.compute.context import ClientContext, Evaluate
from engine.compute.tensor_svd import matrix_count, roughness, soft_threshold, spectra, t_tsvd, thinned
from engine.events import BEFORE_SMOOTHING, Smoothed, Warned
from engine.methods.averaging.base import Noised
from engine.records import ExtraWork, Guarantee, Memory, Packet, Private, Release, Seat, Upload, View, Weights, World

ORDERS = 8  # `averaged` takes the mean over this many client orders
REPORTED_CLIENTS = 20  # the event of a smoothing describes at most this many clients
LARGEST_EXPONENT = 700.0  # exp of a larger number overflows

FAMILY = Family("noise on updates, smoothed", "blue")


class Smoothing(Noised):
    """Every few rounds the server takes the models of all clients as one tensor and lowers its singular values."""

    smoothing: float = Field(
        1.0, gt=0, le=1e6, title="smoothing λ", description="The threshold is 1 / (2 λ): a smaller λ smooths more."
    )
    growth: float = Field(
        1.0,
        ge=1,
        le=2,
        title="growth ϑ",
        description="The threshold grows by this factor from one smoothing to the next.",
    )
    every: int = Field(10, ge=1, le=10_000, title="every I", description="Rounds from one smoothing to the next.")
    layers: int = Field(
        0, ge=0, le=1000, title="smoothed layers", description="Number of layers, counted from the last; 0 means all."
    )
    unsampled_clients: Literal["slot", "mean", "own"] = Field(
        "slot",
        title="after a smoothing",
        description="slot: each client starts from a slice, by its number; mean: all from the mean; own: each its own.",
    )
    client_order: Literal["id", "averaged"] = Field(
        "id",
        title="client order",
        description="The result depends on the order of clients: order by id, or take the mean over several orders.",
    )

    # --- the schedule and its cost

    def smooths(self, round: int) -> bool:
        """Whether the server smooths in this round."""
        return round % self.every == 0

    def threshold(self, round: int) -> float:
        """The threshold of a round: ϑ^(t/I) / 2λ, limited to the largest float."""
        exponent = min(math.log(self.growth) * round / self.every, LARGEST_EXPONENT)
        return min(math.exp(exponent) / (2 * self.smoothing), sys.float_info.max)

    def landmarks(self, world: World) -> tuple[int, ...]:
        return tuple(range(self.every, world.rounds + 1, self.every))

    def work(self, world: World, rounds: int) -> ExtraWork:
        smoothings = rounds // self.every
        models = 1 if self.unsampled_clients == "mean" else world.sampled
        work_per_matrix = 0
        for tensor in world.weights.values():
            if tensor.dim() > 1:
                short, long = sorted((tensor.shape[0], tensor[0].numel()))
                work_per_matrix += short**2 * long
        decomposed = smoothings * matrix_count(models) * work_per_matrix
        extra = super().work(world, rounds)
        judged = smoothings * 2 * min(models, REPORTED_CLIENTS)
        return replace(extra, decomposed=decomposed, judged=judged, kept=float(models))

    # --- slices: the models that clients receive after a smoothing

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """The slice of this client if the last round left one, else the server's model."""
        slices = len(memory.keys() - {BEFORE_SMOOTHING})
        # Privacy (ε of an outsider under Poisson sampling): the client's id selects the slice, not its place in the
        # cohort. With the place, one more client would move the others to other slices, and that ε would be wrong.
        key = seat.client % max(1, slices) if self.unsampled_clients == "slot" else seat.client
        return Packet(memory.get(str(key), server))

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not self.smooths(context.seat.round):
            return super().merge(server, uploads, {}, context)[0], {}
        if self.unsampled_clients == "mean":
            # Privacy (what an outsider sees): an empty round is smoothed as well. A skipped smoothing would show
            # an outsider that no client took part.
            mean, _ = super().merge(server, uploads, {}, context)
            return self.smoothed_mean(mean, context), {BEFORE_SMOOTHING: mean}
        if not uploads:
            return super().merge(server, uploads, {}, context)[0], {}
        models = self.noisy_models(server, uploads, memory, context)
        slices = self.smoothed_models(models, uploads, context)
        kept: dict[str, Weights] = {BEFORE_SMOOTHING: mean_of(models)}
        for slot, upload in enumerate(uploads):
            key = slot if self.unsampled_clients == "slot" else upload.client
            kept[str(key)] = {name: stack[slot] for name, stack in slices.items()}
        return mean_of(slices), kept

    def received_parts(self, seat: Seat, uploads: Sequence[Upload], world: World) -> list[float]:
        """A slice counts as the model of one client, and what the smoothing mixed into it counts as nothing."""
        if self.unsampled_clients == "mean" or not self.smooths(seat.round):
            return super().received_parts(seat, uploads, world)
        received = seat.client % len(uploads) if self.unsampled_clients == "slot" else seat.slot
        return [self.server_step if slot == received else 0.0 for slot in range(len(uploads))]

    def lacks(self, view: View, seat: Seat, memory: Memory) -> str:
        """A participant can subtract its upload from a sum, but not from what a smoothing mixed."""
        if view != "client":
            return ""
        if self.smooths(seat.round):
            return "the other uploads, which the smoothing mixes with its own"
        if memory.keys() - {BEFORE_SMOOTHING}:
            return "the slices from which the other clients started"
        return ""

    def smoothed_mean(self, mean: Weights, context: ClientContext) -> dict[str, Tensor]:
        """The mean of the smoothed slices. It equals the smoothed mean, so the server needs no single upload."""
        threshold = self.threshold(context.seat.round)
        clients = context.world.sampled
        stacks = {name: mean[name][None] for name in self.smoothed_names(mean)}
        smoothed = dict(mean)
        for name in stacks:
            smoothed[name] = soft_threshold(mean[name], threshold / clients)
        sums = {name: clients * stack for name, stack in stacks.items()}
        self.warn_of_erased_layers(sums, smoothed, threshold, context)
        context.report(partial(event_of_mean, context, threshold, stacks))
        return smoothed

    def noisy_models(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> dict[str, Tensor]:
        """The noisy model of each client, (clients, ...): its start plus the server step times its upload."""
        ends = []
        for slot, upload in enumerate(uploads):
            seat = replace(context.seat, client=upload.client, slot=slot)
            start = self.send(seat, server, memory).model
            ends.append(weights.add(start, upload.model, self.server_step))
        return {name: torch.stack([end[name] for end in ends]) for name in server}

    def smoothed_models(
        self, models: Mapping[str, Tensor], uploads: Sequence[Upload], context: ClientContext
    ) -> dict[str, Tensor]:
        """The slices, (clients, ...): the models with lower singular values."""
        threshold = self.threshold(context.seat.round)
        names = self.smoothed_names(models)
        orders = self.client_orders(len(uploads), context)
        slices = dict(models)
        for place, name in enumerate(names):
            results = [t_tsvd(models[name][order], threshold, context.team)[order.argsort()] for order in orders]
            slices[name] = torch.stack(results).mean(0) if len(results) > 1 else results[0]
            context.progress((place + 1) / len(names))
        self.warn_of_erased_layers({name: models[name] for name in names}, slices, threshold, context, orders)
        clients = [upload.client for upload in uploads]
        context.report(partial(event_of_slices, context, threshold, clients, orders[0], names, models, slices))
        return slices

    def client_orders(self, clients: int, context: ClientContext) -> list[Tensor]:
        """The orders in which the models are stacked: by client id, or several random ones."""
        if self.client_order == "id":
            return [torch.arange(clients, device=context.device)]
        rng = context.rng("order")
        orders = [torch.randperm(clients, generator=rng, device="cpu") for _ in range(ORDERS)]
        return [order.to(context.device) for order in orders]

    def smoothed_names(self, models: Mapping[str, Tensor]) -> tuple[str, ...]:
        """The parameters to smooth: weights and biases of all layers, or of the last ones."""
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in models))
        smoothed = set(layers[-self.layers :]) if self.layers else set(layers)
        return tuple(name for name in models if name.rpartition(".")[0] in smoothed)

    def warn_of_erased_layers(
        self,
        models: Mapping[str, Tensor],
        slices: Mapping[str, Tensor],
        threshold: float,
        context: ClientContext,
        orders: Sequence[Tensor | slice] = (slice(None),),
    ) -> None:
        """Report a warning if the threshold set a whole layer to zero."""
        erased = [name for name, stack in models.items() if stack.any() and not slices[name].any()]
        if not erased:
            return
        largest = min(largest_singular_value(models[name], orders) for name in erased)
        least = 1.005 * self.smoothing * threshold / largest  # a margin, because three digits may round it down
        layers = "the whole model" if len(erased) == len(slices) else ", ".join(erased)
        fewer = "" if self.layers == 1 else ", or fewer layers"
        context.report(
            Warned(
                f"the threshold {threshold:.3g} of this smoothing erased {layers}",
                f"A smoothing above {least:.3g} keeps something of it; so does a lower growth{fewer}",
                context.seat.round,
            )
        )

    # --- which models are tested, what is promised

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        """The server's model, and after a smoothing also the model before it."""
        del privates
        before = memory.get(BEFORE_SMOOTHING)
        return {"global": server, BEFORE_SMOOTHING: before} if before else {"global": server}

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        return self._without_sums(super().releases(world, round, cohort))

    def repeated_releases(self, world: World, counts: NDArray[np.intp]) -> tuple[Release, ...] | None:
        repeated = super().repeated_releases(world, counts)
        return None if repeated is None else self._without_sums(repeated)

    def _without_sums(self, releases: tuple[Release, ...]) -> tuple[Release, ...]:
        """The server stacks the models of single clients. A secure sum is impossible, so no view `aggregate` exists."""
        if self.unsampled_clients == "mean":
            return releases
        return tuple(release for release in releases if release.view != "aggregate")

    def noised_protocol(
        self, world: World, seat: Seat, view: View, clip: str, std: Callable[[int], float]
    ) -> dict[str, Any]:
        """After a smoothing a participant receives one slice, and an outsider sees the mean of all slices."""
        facts = super().noised_protocol(world, seat, view, clip, std)
        if self.unsampled_clients == "mean" or view in ("server", "aggregate") or not self.smooths(seat.round):
            return facts
        uploads = 1 if view == "client" and self.unsampled_clients == "slot" else seat.cohort
        return facts | {"uploads": uploads, "std": std(seat.cohort) * self.server_step / math.sqrt(uploads)}

    def guarantee(self, world: World) -> Guarantee:
        guarantee = super().guarantee(world)
        if self.unsampled_clients == "mean":
            return guarantee
        absent = {"aggregate": "the server smooths the clients' models, so it has to see each of them"}
        return replace(guarantee, absent=absent)


def mean_of(stacks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The mean over the clients of every stack (clients, ...)."""
    return {name: stack.mean(0) for name, stack in stacks.items()}


def largest_singular_value(stack: Tensor, orders: Sequence[Tensor | slice]) -> float:
    return max(float(spectra(stack[order]).max()) for order in orders)


# --- the event. The loop builds it after the round, when it can test models, and only if events are read.


def event_of_slices(
    context: ClientContext,
    threshold: float,
    clients: Sequence[int],
    order: Tensor | slice,
    names: Sequence[str],
    models: Mapping[str, Tensor],
    slices: Mapping[str, Tensor],
    evaluate: Evaluate,
) -> Smoothed:
    """The event of a smoothing: spectra, and roughness and accuracy of the first clients before and after."""
    spectrum_by_name = {name: thinned(spectra(models[name][order], context.team)) for name in names}
    rough_before, accuracy_before = client_tables(models, context.world, evaluate)
    rough_after, accuracy_after = client_tables(slices, context.world, evaluate)
    return replace(
        event_of_spectra(context, threshold, spectrum_by_name),
        clients=tuple(clients[:REPORTED_CLIENTS]),
        rough=(rough_before, rough_after),
        accuracy=(accuracy_before, accuracy_after),
    )


def client_tables(stacks: Mapping[str, Tensor], world: World, evaluate: Evaluate) -> tuple[Any, Any]:
    """Roughness and accuracy by class of the first clients' models."""
    layer = class_rows(stacks, world)
    rough = () if layer is None else rounded(roughness(layer)[:, :REPORTED_CLIENTS])
    return rough, evaluate({name: stack[:REPORTED_CLIENTS] for name, stack in stacks.items()})


def event_of_mean(
    context: ClientContext, threshold: float, means: Mapping[str, Tensor], evaluate: Evaluate
) -> Smoothed:
    """The event if the server has only the sum: frequency 0 alone, K times the mean, and no client's model to test."""
    del evaluate
    clients = context.world.sampled
    return event_of_spectra(
        context, threshold, {name: thinned(clients * spectra(mean)) for name, mean in means.items()}
    )


def event_of_spectra(
    context: ClientContext, threshold: float, spectrum_by_name: Mapping[str, tuple[tuple[int, ...], Tensor]]
) -> Smoothed:
    """The event with singular values alone, without anything about clients."""
    ranks = {name: ranks for name, (ranks, _) in spectrum_by_name.items()}
    values = {name: rounded(values) for name, (_, values) in spectrum_by_name.items()}
    return Smoothed(context.seat.round, threshold, (), values, ranks, ((), ()), ((), ()))


def class_rows(models: Mapping[str, Tensor], world: World) -> Tensor | None:
    """The last layer, (clients, classes, ...), its bias as one more column; None if its rows are not classes."""
    columns = []
    for name in world.head:
        stack = models[name]
        columns.append(stack.flatten(2) if stack.dim() > 2 else stack[..., None])
    layer = torch.cat(columns, 2)
    return layer if layer.shape[1] == world.classes else None


def rounded(table: Tensor) -> Any:
    """The table as tuples of five-digit numbers: a chart shows no more digits, and a store holds many events."""
    return tuple(tuple(float(f"{value:.5g}") for value in row) for row in table.tolist())
