"""PPSGD: a shared model plus a private correction of its last layer (arXiv:2202.05318).

Paper → here:  w → the server's model,  θ_k → private,  α → head-step / lr,  C → clip,  z → noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import Extra
from engine.methods.base import METHODS, Trained
from engine.methods.personal.base import Personal
from engine.records import Client, Memory, Packet, Private, Weights


@METHODS.add("ppsgd", title="PPSGD", source="arXiv:2202.05318")
class PPSGD(Personal):
    """Each client adds a last layer of its own to the shared one; what it adds never leaves it."""

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        head = contexts[0].world.head
        starts = [summed(packet, private) for packet, private in zip(packets, privates, strict=True)]
        if self.head_epochs:
            only = [Extra(only=head)] * len(clients)
            starts = sgd.fit(self.head_desks(contexts), starts, clients, only)
        own = [
            {name: start[name] - packet[name] for name in head} for start, packet in zip(starts, packets, strict=True)
        ]
        # both last layers have the same slope: what training moves from here on is the shared one
        ends = sgd.fit(contexts, starts, clients)
        uploads = contexts[0].team.each(self.upload, clients, starts, ends, contexts)
        return list(zip(uploads, own, strict=True))

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        del memory
        return {"global": server, **{client: summed(server, private) for client, private in privates.items()}}


def summed(shared: Weights, private: Private | None) -> Weights:
    """The model of one client: its own part added to the shared last layer."""
    private = private or {}
    return {**shared, **weights.add({name: shared[name] for name in private}, private)}
