"""Methods for tests of the contract only: one has personal models, and one uploads pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import NO_CHANGE
from engine.methods.averaging.base import Averaging
from engine.methods.base import Trained
from engine.records import (
    Client,
    Guarantee,
    Memory,
    Packet,
    Private,
    Protocol,
    Samples,
    Seat,
    Upload,
    View,
    Weights,
    World,
)


class PrivateHead(Averaging):
    """Like CENTAUR: the last layer stays on each client, and all other layers are shared."""

    stateful: ClassVar[bool] = True

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        head = contexts[0].world.head
        starts = [{**packet.model, **(private or {})} for packet, private in zip(packets, privates, strict=True)]
        trained: list[Trained] = []
        for client, start, end in zip(
            clients, starts, self.fit(starts, clients, contexts, [NO_CHANGE] * len(clients)), strict=True
        ):
            shared = {name: end[name] - start[name] for name in end if name not in head}
            trained.append((Upload(client.id, "update", shared), {name: end[name] for name in head}))
        return trained

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        if not uploads:
            return server, memory
        mean = weights.scale(weights.total([upload.model for upload in uploads]), 1 / len(uploads))
        return {name: value + mean[name] if name in mean else value for name, value in server.items()}, memory

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        return {"global": server, **{client: {**server, **head} for client, head in privates.items()}}

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "nothing is clipped or noised")


class UploadsPictures(Averaging):
    """Each client uploads its first pictures, and the server trains on the union. It protects nothing."""

    pictures: int = Field(2, ge=1, le=8, title="pictures", description="How many pictures a client uploads.")

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        trained: list[Trained] = []
        for client, context in zip(clients, contexts, strict=True):
            context.used = torch.arange(min(self.pictures, len(client.y)))
            samples = Samples(client.x[context.used], client.y[context.used])
            trained.append((Upload(client.id, "samples", samples=samples), None))
        return trained

    def merge(
        self, server: Weights, uploads: Sequence[Upload], memory: Memory, context: ClientContext
    ) -> tuple[Weights, Memory]:
        samples = [upload.samples for upload in uploads if upload.samples]
        if not samples:
            return server, memory
        x = torch.cat([part.x for part in samples])
        y = torch.cat([part.y for part in samples])
        return sgd.fit([context], [server], [Client(-1, x, y)])[0], memory

    def protocol(self, world: World, seat: Seat, view: View) -> Protocol:
        return replace(super().protocol(world, seat, view), kind="samples")

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "the pictures leave as they are")
