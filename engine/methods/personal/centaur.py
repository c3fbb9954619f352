"""CENTAUR: clients share all layers but the last, which stays on each client (Shen et al., 2023).

Paper → here:  B → the shared layers,  w_k → private,  σ_g → noise,  ζ_g → clip,  local head steps → head-epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from engine.compute import sgd, weights
from engine.compute.context import ClientContext
from engine.compute.sgd import StepChange
from engine.methods.base import METHODS, Trained
from engine.methods.personal.base import Personal
from engine.part import Problem
from engine.records import Client, Memory, Packet, Private, Weights, World


@METHODS.add("centaur", title="CENTAUR", source="Shen et al., ICLR 2023")
class Centaur(Personal):
    """Each client keeps its last layer to itself; what it shares of the others is limited and gets noise."""

    headless: ClassVar[bool] = True

    head_epochs: int = Field(
        15, ge=1, le=1000, title="head epochs", description="Epochs in which a client trains only its own last layer."
    )
    head_lr: float = Field(0.01, gt=0, le=100, title="head step", description="Learning rate of these epochs.")

    def shared_weights(self, server: Weights, world: World) -> Weights:
        return {name: tensor for name, tensor in server.items() if name not in world.head}

    def train_all(
        self,
        clients: Sequence[Client],
        packets: Sequence[Packet],
        privates: Sequence[Private | None],
        contexts: Sequence[ClientContext],
    ) -> list[Trained]:
        world = contexts[0].world
        shared_names = tuple(self.shared_weights(packets[0].model, world))
        starts: list[Weights] = []
        for packet, private in zip(packets, privates, strict=True):
            starts.append({**packet.model, **(private or {})})
        head_only = [StepChange(only=world.head)] * len(clients)
        starts = list(sgd.fit(self.head_contexts(contexts), starts, clients, head_only))
        heads = [{name: start[name] for name in world.head} for start in starts]
        shared_only = [StepChange(only=shared_names)] * len(clients)
        ends = sgd.fit(contexts, starts, clients, shared_only)
        # Privacy (the last layer never leaves its client): an upload is made of the shared weights alone.
        shared_starts = [self.shared_weights(start, world) for start in starts]
        shared_ends = [self.shared_weights(end, world) for end in ends]
        uploads = contexts[0].team.each(self.upload, clients, shared_starts, shared_ends, contexts)
        return list(zip(uploads, heads, strict=True))

    def judged(self, server: Weights, memory: Memory, privates: Mapping[int, Private]) -> Mapping[str | int, Weights]:
        """The clients' models. No last layer is shared, so `global` uses the mean of the clients' last layers."""
        del memory
        if not privates:
            return {"global": server}
        mean = weights.scale(weights.total(privates.values()), 1 / len(privates))
        models: dict[str | int, Weights] = {"global": {**server, **mean}}
        for client, head in privates.items():
            models[client] = {**server, **head}
        return models

    def remarks(self, world: World) -> tuple[Problem, ...]:
        warning = Problem(
            "no last layer is shared: the accuracy called global is that of the mean of the clients' own ones",
            "Judge this method by its personal accuracy",
            fatal=False,
        )
        return (*super().remarks(world), warning)
