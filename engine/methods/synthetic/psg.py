"""PSG: a data set is condensed under differential privacy, once, in one place (Chen et al. 2022, arXiv:2211.04446).

Paper → here:  σ → noise,  C → clip (per example),  iterations → networks,  outer loops → loops.

All classes are matched together, from noised gradients of new networks: networks · loops · batches reads of the data.
FedLAP's table 4 compares FedLAP-DP with it. Its "ε = 32 in federated settings" could not be derived.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from engine.compute.condensing import MovingPictures
from engine.compute.context import ClientContext
from engine.methods.base import METHODS, Method, clip_field
from engine.methods.synthetic.base import NoisedSynthetic
from engine.methods.synthetic.networks import ManyNetworks
from engine.records import Client, Upload, Weights


@METHODS.add("psg", title="PSG (central, one shot)", source="arXiv:2211.04446")
class PSG(NoisedSynthetic, ManyNetworks):
    """One client with all data makes pictures from noised gradients, which hide any single record of the data."""

    BASELINE: ClassVar[tuple[str, ...]] = (
        "per_class", "image_lr", "server_steps", "server_step", "decay", "networks", "loops", "inner", "rows",
    )  # fmt: skip

    clip: float = clip_field(0.1)
    networks: int = Field(
        50,
        ge=1,
        le=10_000,
        title="networks",
        description="New models for which the pictures are made.",
    )
    batches: int = Field(
        10, ge=1, le=1000, title="batches", description="Batches of the data whose gradients each loop matches."
    )
    loops: int = Field(1, ge=1, le=1000, title="loops", description="Times that each network is matched and trained.")

    def baseline(self) -> Method | None:
        """DSC with as many networks and steps."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.BASELINE}
        return METHODS.make({"name": "dsc", **fields})

    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        del start
        access = self.noised_batches(client, context)
        lr = self.rate(context.world, 1)
        for number in range(self.networks):
            model = self.new_network(number, context)
            for _ in range(self.loops):
                for _ in range(self.batches):
                    pictures.match(model, access(model), self.matching, self.image_lr)
                for _ in range(self.inner):
                    model.move(model.gradient(pictures.x, pictures.y), lr)
            context.progress((number + 1) / self.networks)
        return Upload(client.id, "samples", samples=pictures.samples)

    @property
    def accesses(self) -> int:
        return self.networks * self.loops * self.batches

    def trial(self) -> Method:
        return self.with_(networks=1, loops=1, batches=1, server_steps=min(2, self.server_steps))
