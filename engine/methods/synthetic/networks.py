"""What DSC and PSG share: one client makes its pictures once, for many models with first weights of their own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.compute.condensing import GradientDistance, PlainModel
from engine.compute.context import ClientContext
from engine.methods.base import Method
from engine.methods.synthetic.base import Synthetic
from engine.part import Problem
from engine.records import Weights


class ManyNetworks(Synthetic):
    """All data are with one client. Its pictures match gradients of new networks, each of which trains on them."""

    networks: int = Field(
        20,
        ge=1,
        le=10_000,
        title="networks",
        description="New models for which the pictures are made.",
    )
    loops: int = Field(5, ge=1, le=1000, title="loops", description="Times that each network is matched and trained.")
    inner: int = Field(
        10, ge=0, le=1000, title="model steps", description="Steps of the network on the pictures between two loops."
    )
    rows: Literal["sum", "mean"] = Field(
        "sum", title="rows", description="How the cosines of the rows of a layer are put together."
    )
    server_steps: int = Field(
        300, ge=1, le=10_000, title="server steps", description="Steps that the server trains on the uploaded pictures."
    )

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        if spec.clients == 1 and spec.rounds == 1:
            return super().problems(spec)
        reason = (
            f"{self.name}: its paper has one client with all data and one round; here each of {spec.clients} clients "
            f"makes new pictures in each of {spec.rounds} rounds"
        )
        return (*super().problems(spec), Problem(reason, "Set clients, sampled and rounds to 1", fatal=False))

    @property
    def matching(self) -> GradientDistance:
        return GradientDistance(rows=self.rows)

    def new_network(self, number: int, context: ClientContext) -> PlainModel:
        """A network with first weights of its own."""
        rng = context.rng(f"network-{number}")
        first: Weights = {
            name: tensor.detach().to(context.device) for name, tensor in context.world.build(rng).named_parameters()
        }
        return PlainModel.of(context.world, first, context.rng("dropout"))

    def trial(self) -> Method:
        return self.with_(networks=1, loops=1, server_steps=min(2, self.server_steps))
