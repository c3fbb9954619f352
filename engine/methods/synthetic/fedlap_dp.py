"""FedLAP-DP: FedLAP whose clients see their data through noised gradients alone (arXiv:2302.01068, algorithm 2).

Paper → here:  σ → noise,  C → clip (per example),  B → batch (the expected one),  r → radius,  R_i → trajectories,
R_b → batches,  the image updates for each batch → boost,  R_l → inner,  "at most 5 loops" → stops.

Algorithm 2 prints the noise inside the sum over examples. Here, as in the published code, one noise is added to each
batch. The radius is a constant: a radius that was measured on private data would be a release of its own.
ε follows Theorem A.8 with full participation: trajectories · stops · batches steps of the sampled Gaussian a round.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.compute.condensing import MovingPictures
from engine.compute.context import ClientContext
from engine.methods.base import METHODS, Method
from engine.methods.synthetic.base import NoisedSynthetic
from engine.methods.synthetic.trajectories import Trajectories, comparison
from engine.records import Client, Upload, Weights


@METHODS.add("fedlap-dp", title="FedLAP-DP", source="arXiv:2302.01068")
class FedLAPDP(NoisedSynthetic, Trajectories):
    """Clients upload pictures made from noised gradients, so that the pictures hide any single record."""

    image_lr: float = Field(
        300.0, gt=0, le=1e5, title="picture step", description="The learning rate of the pictures that a client makes."
    )
    radius: float = Field(
        1.5, gt=0, le=1e6, title="radius r", description="How far the server and a trajectory go in a round. Constant."
    )
    begins: Literal["noise", "previous"] = Field(
        "previous",
        title="pictures start as",
        description="Noise, or the pictures of the round before. Real pictures would leave the client.",
    )
    matching: Literal["cosine", "cosine+mse", "mse"] = Field(
        "cosine", title="matching", description="What of two gradients is compared."
    )
    square: float = Field(
        0.1, ge=0, le=1000, title="weight λ", description="Weight of the squared difference in `cosine+mse`."
    )

    def baseline(self) -> Method | None:
        fields: dict[str, Any] = {name: getattr(self, name) for name in BASELINE_FIELDS}
        return METHODS.make({"name": "fedlap", **fields})

    @property
    def beginning(self) -> str:
        return self.begins

    def condense(self, client: Client, pictures: MovingPictures, start: Weights, context: ClientContext) -> Upload:
        matching = comparison(self.matching, self.square)
        self.follow(self.noised_batches(client, context), pictures, start, matching, context)
        return Upload(client.id, "samples", samples=pictures.samples)

    def ball(self, uploads: object) -> float | None:
        del uploads
        return self.radius


# What FedLAP-DP and its baseline have in common: all but the noise, the clip and the choice of the radius.
BASELINE_FIELDS = ("per_class", "image_lr", "server_steps", "server_step", "decay", "radius", "trajectories", "stops",
                   "batches", "boost", "inner", "begins", "matching", "square")  # fmt: skip
