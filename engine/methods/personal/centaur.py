"""CENTAUR: the layers below are learnt together, the last one stays at home (Shen et al., 2023).

Paper → here:  B → the shared layers,  w_k → private,  σ_g → noise,  ζ_g → clip,  local head steps → head-epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import Extra
from engine.methods.base import METHODS, Trained
from engine.methods.personal.base import Personal
from engine.part import Problem
from engine.records import Client, Memory, Packet, Private, Weights, World


@METHODS.add("centaur", title="CENTAUR", source="Shen et al., ICLR 2023")
class Centaur(Personal):
    """Each client keeps its last layer to itself; only what lies below is learnt together."""

    headless: ClassVar[bool] = True

    head_epochs: int = Field(
        15, ge=1, le=1000, title="head epochs", description="Epochs in which a client trains its own last layer alone."
    )
    head_lr: float = Field(0.01, gt=0, le=100, title="head step", description="Learning rate of these epochs.")

    def common(self, server: Weights, world: World) -> Weights:
        return {name: tensor for name, tensor in server.items() if name not in world.head}

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        world = contexts[0].world
        shared = tuple(self.common(packets[0], world))
        starts: list[Weights] = [
            {**packet, **(private or {})} for packet, private in zip(packets, privates, strict=True)
        ]
        starts = list(sgd.fit(self.head_desks(contexts), starts, clients, [Extra(only=world.head)] * len(clients)))
        own = [{name: start[name] for name in world.head} for start in starts]
        ends = sgd.fit(contexts, starts, clients, [Extra(only=shared)] * len(clients))
        below = [[self.common(model, world) for model in models] for models in (starts, ends)]
        uploads = contexts[0].team.each(self.upload, clients, *below, contexts)
        return list(zip(uploads, own, strict=True))

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        """No last layer is shared: `global` is judged with the mean of those the clients have."""
        del memory
        if not privates:
            return {"global": server}
        mean = weights.scale(weights.total(privates.values()), 1 / len(privates))
        return {"global": {**server, **mean}, **{client: {**server, **own} for client, own in privates.items()}}

    def remarks(self, world: World) -> tuple[Problem, ...]:
        return (
            *super().remarks(world),
            Problem(
                "no last layer is shared: the accuracy called global is that of the mean of the clients' own ones",
                "Judge this method by its personal accuracy",
                fatal=False,
            ),
        )
