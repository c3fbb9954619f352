"""DSC: a data set is condensed into a few pictures a class, once and in one place (Zhao et al. 2021, arXiv:2006.05929).

Paper → here:  K networks → networks,  T → loops,  ς_θ → inner,  η_S → image-lr.

For each class apart, the pictures match the gradient of a batch of that class, in one step. Table 1 of FedLAP compares
it with federated methods: it has one client with all data, and one round.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from engine.compute.condensing import MovingPictures, PlainModel, matching_gradient
from engine.compute.context import ClientContext
from engine.methods.base import METHODS
from engine.methods.synthetic.networks import ManyNetworks
from engine.records import Client, Guarantee, Samples, Upload, Weights, World


@METHODS.add("dsc", title="DSC (central, one shot)", source="arXiv:2006.05929")
class DSC(ManyNetworks):
    """One client with all data makes a few pictures of each class, and the server learns from them. No protection."""

    begins: Literal["noise", "real"] = Field(
        "noise",
        title="pictures start as",
        description="Noise, or the client's own pictures, which then leave it.",
    )

    @property
    def beginning(self) -> str:
        return self.begins

    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        del start
        rng = context.rng("batches")
        lr = self.rate(context.world, 1)
        for number in range(self.networks):
            model = self.new_network(number, context)
            for _ in range(self.loops):
                self._match_classes(client, pictures, model, rng, context)
                for _ in range(self.inner):
                    model.move(model.gradient(pictures.x, pictures.y), lr)
            context.progress((number + 1) / self.networks)
        return Upload(client.id, "samples", samples=pictures.samples)

    def _match_classes(
        self,
        client: Client,
        pictures: MovingPictures,
        model: PlainModel,
        rng: torch.Generator,
        context: ClientContext,
    ) -> None:
        """One step of all pictures, those of each class towards the gradient of a batch of the class."""
        moves = torch.zeros_like(pictures.x)
        for label in pictures.y.unique().tolist():
            places = torch.nonzero(client.y == label).flatten()
            if not len(places):
                continue
            order = torch.randperm(len(places), generator=rng, device="cpu").to(places.device)
            batch = places[order[: context.world.local.batch]]
            target = model.gradient(client.x[batch], client.y[batch])
            own = pictures.y == label
            moves[own] = matching_gradient(model, Samples(pictures.x[own], pictures.y[own]), target, self.matching)
        pictures.move(moves, self.image_lr)

    @property
    def accesses(self) -> int:
        return self.networks * self.loops

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "the pictures are made from exact gradients of the data, without noise")
