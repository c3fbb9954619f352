"""FedAvg: clients train locally, send the weight difference, and the server takes the mean (arXiv:1602.05629).

Paper → here:  E → epochs,  B → batch,  C → sampled / clients,  n_k / n → weighting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from engine.capabilities import Suggestion
from engine.methods.averaging.base import Averaging
from engine.methods.base import METHODS
from engine.records import Guarantee, Upload, World


@METHODS.add("fedavg", title="FedAvg", source="arXiv:1602.05629")
class FedAvg(Averaging):
    """Clients train on their own data, the server averages their models, and nothing is protected."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("None", 1),)

    weighting: Literal["uniform", "size"] = Field(
        "uniform", title="weights", description="Whether each client counts the same, or by how many pictures it has."
    )

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        sizes = [world.sizes[upload.client] if self.weighting == "size" else 1 for upload in uploads]
        return [size / sum(sizes) for size in sizes]

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "every upload leaves as it is: no clipping and no noise")
