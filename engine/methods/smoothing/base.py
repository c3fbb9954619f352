"""The contract of methods whose server smooths: when it does, what it gives back, and what it says of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from engine.compute import weights
from engine.compute.context import ClientContext, Evaluate
from engine.compute.tensor_svd import matrices, roughness, soft, spectra, t_tsvd, thinned
from engine.events import BEFORE_SMOOTHING, Smoothed, Warned
from engine.methods.averaging.base import Noised
from engine.records import ExtraWork, Guarantee, Memory, Packet, Private, Release, Seat, Upload, View, Weights, World

ORDERS = 8  # over so many orders of the clients `averaged` takes the mean
TOLD = 20  # so many clients of a smoothing are told of


class Smoothing(Noised):
    """Every few rounds the server takes the models of all clients as one tensor and lowers its singular values."""

    smoothing: float = Field(
        1.0, gt=0, le=1e6, title="smoothing λ", description="The threshold is half of its inverse: less smooths more."
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
        0, ge=0, le=1000, title="smoothed layers", description="So many, counted from the last one; 0: all of them."
    )
    unsampled_clients: Literal["slot", "mean", "own"] = Field(
        "slot",
        title="after a smoothing",
        description="slot: each client starts from a slice, by its number; mean: all from the mean; own: each its own.",
    )
    client_order: Literal["id", "averaged"] = Field(
        "id",
        title="client order",
        description="What is smoothed depends on the order of clients: by id, or the mean over several orders.",
    )

    def smooths(self, round: int) -> bool:
        return round % self.every == 0

    def threshold(self, round: int) -> float:
        grown = math.exp(min(math.log(self.growth) * round / self.every, 700.0))
        return min(grown / (2 * self.smoothing), sys.float_info.max)

    def landmarks(self, world: World) -> tuple[int, ...]:
        return tuple(range(self.every, world.rounds + 1, self.every))

    def effort(self, world: World, rounds: int) -> ExtraWork:
        times, many = rounds // self.every, 1 if self.unsampled_clients == "mean" else world.sampled
        sides = [sorted((tensor.shape[0], tensor[0].numel())) for tensor in world.weights.values() if tensor.dim() > 1]
        each = sum(short**2 * long for short, long in sides)
        return ExtraWork(times * matrices(many) * each, times * 2 * min(many, TOLD))

    # --- slices: what the server gives back after a smoothing

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """The slice of this client, where the last round smoothed and left one; else the server's model."""
        # each name once in every slice, and once in what was there before
        many = len(memory) // len(server) - 1
        # by its number alone: by its place in the round, who else is there would move the others to other slices,
        # and an outsider's ε would no longer be that of Poisson sampling
        mine = seat.client % max(1, many) if self.unsampled_clients == "slot" else seat.client
        return {name: memory.get(f"{mine}/{name}", tensor) for name, tensor in server.items()}

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        alone = self.unsampled_clients != "mean"
        if not self.smooths(context.seat.round) or (alone and not uploads):
            return super().merge(server, uploads, {}, context)[0], {}
        if not alone:  # an empty round as well: left out, it would progress an outsider that nobody came
            mean, _ = super().merge(server, uploads, {}, context)
            return self.smoothed_mean(mean, context), unsmoothed(mean)
        models = self.models(server, uploads, memory, context)
        slices = self.smoothed(models, uploads, context)
        keys = range(len(uploads)) if self.unsampled_clients == "slot" else [upload.client for upload in uploads]
        given = {f"{key}/{name}": tensor[place] for place, key in enumerate(keys) for name, tensor in slices.items()}
        return mean_of(slices), unsmoothed(mean_of(models)) | given

    def smoothed_mean(self, mean: Weights, context: ClientContext) -> dict[str, Tensor]:
        """The mean of the smoothed slices is the smoothed mean: no upload has to be seen by itself."""
        threshold, many, chosen = self.threshold(context.seat.round), context.world.sampled, self.chosen(mean)
        alone = {name: mean[name][None] for name in chosen}
        smoothed = {name: soft(mean[name], threshold / many) if name in chosen else mean[name] for name in mean}
        self.report({name: many * stack for name, stack in alone.items()}, smoothed, threshold, context)
        context.report(partial(told_of_mean, context, threshold, alone))
        return smoothed

    def models(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> dict[str, Tensor]:
        """The noisy model of each client, (clients, ...): where it began, and the server's step along its update."""
        seats = [replace(context.seat, client=upload.client, slot=slot) for slot, upload in enumerate(uploads)]
        starts = [self.send(seat, server, memory) for seat in seats]
        ends = [weights.add(start, one.tensors, self.server_step) for start, one in zip(starts, uploads, strict=True)]
        return {name: torch.stack([end[name] for end in ends]) for name in server}

    def smoothed(
        self, models: Mapping[str, Tensor], uploads: Sequence[Upload], context: ClientContext
    ) -> dict[str, Tensor]:
        threshold, chosen, many = self.threshold(context.seat.round), self.chosen(models), len(uploads)
        orders = [torch.arange(many)]
        if self.client_order == "averaged":
            rng = context.rng("order")
            orders = [torch.randperm(many, generator=rng) for _ in range(ORDERS)]
        slices = dict(models)
        for place, name in enumerate(chosen):
            turns = [t_tsvd(models[name][order], threshold, context.team)[order.argsort()] for order in orders]
            slices[name] = torch.stack(turns).mean(0) if len(turns) > 1 else turns[0]
            context.progress((place + 1) / len(chosen))
        self.report({name: models[name] for name in chosen}, slices, threshold, context, orders)
        clients = [upload.client for upload in uploads]
        context.report(partial(told_of_slices, context, threshold, clients, orders[0], chosen, models, slices))
        return slices

    def chosen(self, models: Mapping[str, Tensor]) -> tuple[str, ...]:
        """The names of what is smoothed: weights and biases of all layers, or of the last ones."""
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in models))
        kept = set(layers[-self.layers :]) if self.layers else set(layers)
        return tuple(name for name in models if name.rpartition(".")[0] in kept)

    def report(
        self,
        models: Mapping[str, Tensor],
        slices: Mapping[str, Tensor],
        threshold: float,
        context: ClientContext,
        orders: Sequence[Tensor | slice] = (slice(None),),
    ) -> None:
        """Say it where a threshold left nothing of a layer."""
        gone = [name for name, stack in models.items() if stack.any() and not slices[name].any()]
        if not gone:
            return
        largest = min(max(float(spectra(models[name][order]).max()) for order in orders) for name in gone)
        least = 1.005 * self.smoothing * threshold / largest  # three digits must not round it down
        whole = "the whole model" if len(gone) == len(slices) else ", ".join(gone)
        fewer = "" if self.layers == 1 else ", or fewer layers"
        context.report(
            Warned(
                f"the threshold {threshold:.3g} of this smoothing erased {whole}",
                f"A smoothing above {least:.3g} keeps something of it; so does a lower growth{fewer}",
                context.seat.round,
            )
        )

    # --- what is judged and promised

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        del privates
        before = {
            name.partition("/")[2]: tensor for name, tensor in memory.items() if name.startswith(f"{BEFORE_SMOOTHING}/")
        }
        return {"global": server, **({BEFORE_SMOOTHING: before} if before else {})}

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        told = super().releases(world, round, cohort)
        alone = self.unsampled_clients != "mean"  # then the server has to see every upload by itself
        return tuple(one for one in told if not (alone and one.view == "aggregate"))

    def noised_protocol(
        self, world: World, seat: Seat, view: View, clip: str, std: Callable[[int], float]
    ) -> dict[str, Any]:
        """After a smoothing a participant is given one slice, an outsider the mean of the slices of all who came."""
        told = super().noised_protocol(world, seat, view, clip, std)
        if self.unsampled_clients == "mean" or view in ("server", "aggregate") or not self.smooths(seat.round):
            return told
        many = 1 if view == "client" and self.unsampled_clients == "slot" else seat.cohort
        return told | {"uploads": many, "std": std(seat.cohort) * self.server_step / math.sqrt(many)}

    def guarantee(self, world: World) -> Guarantee:
        told = super().guarantee(world)
        if self.unsampled_clients == "mean":
            return told
        return replace(
            told, absent={"aggregate": "the server smooths the clients' models, so it has to see each of them"}
        )


def mean_of(stacks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: stack.mean(0) for name, stack in stacks.items()}


def unsmoothed(mean: Weights) -> dict[str, Tensor]:
    """What would have become the model, for the judge alone."""
    return {f"{BEFORE_SMOOTHING}/{name}": tensor for name, tensor in mean.items()}


# --- the event, told after the round: only then is there a judge, and only where somebody listens


def told_of_slices(
    context: ClientContext,
    threshold: float,
    clients: Sequence[int],
    order: Tensor | slice,
    chosen: Sequence[str],
    models: Mapping[str, Tensor],
    slices: Mapping[str, Tensor],
    judge: Evaluate,
) -> Smoothed:
    found = {name: thinned(spectra(models[name][order], context.team)) for name in chosen}
    ends = [rows(models, context.world), rows(slices, context.world)]
    rough = [digits(roughness(layer)[:, :TOLD]) if layer is not None else () for layer in ends]
    scores = [judge({name: stack[:TOLD] for name, stack in stacks.items()}) for stacks in (models, slices)]
    spectrum = told_of_spectra(context, threshold, found)
    return replace(spectrum, clients=tuple(clients[:TOLD]), rough=(rough[0], rough[1]), accuracy=(scores[0], scores[1]))


def told_of_mean(context: ClientContext, threshold: float, alone: Mapping[str, Tensor], judge: Evaluate) -> Smoothed:
    """Of the sum there is frequency 0 alone, K times the mean, and no client's model to judge."""
    del judge
    found = {name: thinned(context.world.sampled * spectra(mean)) for name, mean in alone.items()}
    return told_of_spectra(context, threshold, found)


def told_of_spectra(
    context: ClientContext, threshold: float, found: Mapping[str, tuple[tuple[int, ...], Tensor]]
) -> Smoothed:
    values = {name: digits(values) for name, (_, values) in found.items()}
    ranks = {name: ranks for name, (ranks, _) in found.items()}
    return Smoothed(context.seat.round, threshold, (), values, ranks, ((), ()), ((), ()))


def rows(models: Mapping[str, Tensor], world: World) -> Tensor | None:
    """The last layer with a row for each class, its bias as one more column: (clients, classes, ...)."""
    parts = [models[name].flatten(2) if models[name].dim() > 2 else models[name][..., None] for name in world.head]
    layer = torch.cat(parts, 2)
    return layer if layer.shape[1] == world.classes else None


def digits(table: Tensor) -> Any:
    """The numbers of a table, five digits each: a picture shows no more, and a store holds many events."""
    return tuple(tuple(float(f"{one:.5g}") for one in row) for row in table.tolist())
