"""FedCEO: UDP-FedAvg whose server now and then smooths all models as one tensor (arXiv:2402.07002).

Paper → here:  λ → smoothing,  ϑ → growth,  I → every,  Ŵ_k → the slices,  threshold → ϑ^(t/I) / 2λ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from engine import weights
from engine.desk import Desk
from engine.events import BEFORE_SMOOTHING, Warned
from engine.methods.base import METHODS
from engine.methods.base_user import UserLevel
from engine.records import (
    Gaussian,
    Guarantee,
    Memory,
    Packet,
    Private,
    Release,
    Seat,
    Upload,
    Weights,
    World,
)
from engine.spectrum import soft, spectra, t_tsvd

ORDERS = 8  # over so many orders of the clients `averaged` takes the mean


@METHODS.add("fedceo", title="FedCEO", source="arXiv:2402.07002")
class FedCEO(UserLevel):
    """UDP-FedAvg, and every few rounds the server removes what the noisy models of a round do not share."""

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
        description="slot: the j-th client starts from slice j; mean: all from the mean; own: each from its own slice.",
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
        return grown / (2 * self.smoothing)

    def landmarks(self, world: World) -> tuple[int, ...]:
        return tuple(range(self.every, world.rounds + 1, self.every))

    # --- slices: what the server gives back after a smoothing

    def send(self, seat: Seat, server: Weights, memory: Memory) -> Packet:
        """The slice of this seat, where the last round smoothed and left one; else the server's model."""
        own = f"{seat.slot if self.unsampled_clients == 'slot' else seat.client}/"
        return {**server, **{name.removeprefix(own): tensor for name, tensor in memory.items() if name.startswith(own)}}

    def merge(self, server: Weights, uploads: Sequence[Upload], memory: Memory, desk: Desk) -> tuple[Weights, Memory]:
        mean, _ = super().merge(server, uploads, {}, desk)
        if not uploads or not self.smooths(desk.seat.round):
            return mean, {}
        before = {f"{BEFORE_SMOOTHING}/{name}": tensor for name, tensor in mean.items()}
        if self.unsampled_clients == "mean":
            # the mean of the smoothed slices is the smoothed mean: no upload has to be seen by itself
            share = self.threshold(desk.seat.round) / desk.world.sampled
            chosen = self.chosen(mean)
            smoothed = {name: soft(tensor, share) if name in chosen else tensor for name, tensor in mean.items()}
            self.report({name: mean[name][None] for name in chosen}, smoothed, share, desk)
            return smoothed, before
        slices = self.smoothed(self.models(server, uploads, memory, desk), desk)
        mean = {name: tensor.mean(0) for name, tensor in slices.items()}
        keys = range(len(uploads)) if self.unsampled_clients == "slot" else [upload.client for upload in uploads]
        given = {f"{key}/{name}": tensor[place] for place, key in enumerate(keys) for name, tensor in slices.items()}
        return mean, before | given

    def models(self, server: Weights, uploads: Sequence[Upload], memory: Memory, desk: Desk) -> dict[str, Tensor]:
        """The noisy model of each client, (clients, ...): where it began, and the server's step along its update."""
        seats = [replace(desk.seat, client=upload.client, slot=slot) for slot, upload in enumerate(uploads)]
        starts = [self.send(seat, server, memory) for seat in seats]
        ends = [weights.add(start, one.tensors, self.server_step) for start, one in zip(starts, uploads, strict=True)]
        return {name: torch.stack([end[name] for end in ends]) for name in server}

    def smoothed(self, models: Mapping[str, Tensor], desk: Desk) -> dict[str, Tensor]:
        threshold, chosen = self.threshold(desk.seat.round), self.chosen(models)
        many = len(next(iter(models.values())))
        orders = [torch.arange(many)]
        if self.client_order == "averaged":
            rng = desk.rng("order")
            orders = [torch.randperm(many, generator=rng) for _ in range(ORDERS)]
        slices = dict(models)
        for place, name in enumerate(chosen):
            turns = [t_tsvd(models[name][order], threshold, desk.crew)[order.argsort()] for order in orders]
            slices[name] = torch.stack(turns).mean(0) if len(turns) > 1 else turns[0]
            desk.tell((place + 1) / len(chosen))
        self.report({name: models[name] for name in chosen}, slices, threshold, desk)
        return slices

    def chosen(self, models: Mapping[str, Tensor]) -> tuple[str, ...]:
        """The names of what is smoothed: weights and biases of all layers, or of the last ones."""
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in models))
        kept = set(layers[-self.layers :]) if self.layers else set(layers)
        return tuple(name for name in models if name.rpartition(".")[0] in kept)

    def report(self, models: Mapping[str, Tensor], slices: Mapping[str, Tensor], threshold: float, desk: Desk) -> None:
        """Say it where a threshold left nothing of a layer."""
        gone = [name for name, stack in models.items() if stack.any() and not slices[name].any()]
        if not gone:
            return
        largest = min(float(spectra(models[name]).max()) for name in gone)
        least = self.smoothing * threshold / largest
        whole = "the whole model" if len(gone) == len(models) else ", ".join(gone)
        desk.say(
            Warned(
                f"the threshold {threshold:.3g} of this smoothing erased {whole}",
                f"A smoothing above {least:.3g} keeps something of it; so does a lower growth, or fewer layers",
                desk.seat.round,
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
        if self.unsampled_clients == "mean":
            return told
        told = tuple(one for one in told if one.view != "aggregate")  # the server has to see every upload by itself
        if not cohort or not self.smooths(round):
            return told
        # a slice is one noisy upload in a new dress: whoever is given slices has seen the uploads
        who = tuple(cohort)
        seen = Gaussian(self.noise / (1.0 if self.noise_split == "full-local" else math.sqrt(len(who))))
        return tuple(Release(view, seen, who) for view in ("server", "outsider", "client"))

    def guarantee(self, world: World) -> Guarantee:
        told = super().guarantee(world)
        if self.unsampled_clients == "mean":
            return told
        why = "; the slices of a smoothing count as released, as if every upload in it had been shown"
        absent = {"aggregate": "the server smooths the clients' models, so it has to see each of them"}
        return replace(told, reason=told.reason + (why if self.noise else ""), absent=absent)
