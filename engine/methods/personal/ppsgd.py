"""PPSGD: a shared model plus a private correction of its last layer (arXiv:2202.05318).

Paper → here:  w → the server's model,  θ_k → private,  α → head-step / lr,  C → clip,  z → noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import StepChange
from engine.methods.base import METHODS, Trained
from engine.methods.personal.base import Personal
from engine.records import Client, Memory, Packet, Private, Weights


@METHODS.add("ppsgd", title="PPSGD", source="arXiv:2202.05318")
class PPSGD(Personal):
    """Each client keeps a correction of the last layer to itself; what it shares is limited and gets noise."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        head = contexts[0].world.head
        starts = [corrected(packet.model, private) for packet, private in zip(packets, privates, strict=True)]
        if self.head_epochs:
            head_only = [StepChange(only=head)] * len(clients)
            starts = sgd.fit(self.head_contexts(contexts), starts, clients, head_only)
        corrections = []
        for start, packet in zip(starts, packets, strict=True):
            corrections.append({name: start[name] - packet.model[name] for name in head})
        # The shared last layer and the correction have the same gradient, so all further training counts as shared.
        # Privacy (the correction never leaves its client): `upload` subtracts the start, which contains it.
        ends = sgd.fit(contexts, starts, clients)
        uploads = contexts[0].team.each(self.upload, clients, starts, ends, contexts)
        return list(zip(uploads, corrections, strict=True))

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        del memory
        models: dict[str | int, Weights] = {"global": server}
        for client, correction in privates.items():
            models[client] = corrected(server, correction)
        return models


def corrected(shared: Weights, correction: Private | None) -> Weights:
    """The model of one client: the shared model with the client's correction added to the last layer."""
    correction = correction or {}
    return {**shared, **weights.add({name: shared[name] for name in correction}, correction)}
