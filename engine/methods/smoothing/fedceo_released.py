"""FedCEO as its published code computes it: DP-SGD in every client, and the server's smoothing (arXiv:2402.07002).

Paper → here:  σ_g → noise,  C → clip (per example),  λ → smoothing,  ϑ → growth,  I → every.

The paper's algorithm protects a whole client with noise on its update: that is `fedceo`. The code protects one picture
with noise on every local step. It does not clip an update and does not scale it by η. Without the smoothing it is
`dp-fedavg`. The two make different promises, so LeakLens never compares their ε.

As in the code, a client that took part in a smoothing and in the next round starts from its own slice. The code gives
all other clients the last model they had, however old. Here they start from the mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from engine.methods.base import METHODS
from engine.methods.record_level.base import RecordLevel
from engine.methods.smoothing.base import Smoothing
from engine.records import Guarantee, World


@METHODS.add("fedceo-released", title="FedCEO (as released)", source="arXiv:2402.07002")
class FedCEOReleased(Smoothing, RecordLevel):
    """Clients train with noise on every step, and every few rounds the server removes what the models do not share."""

    unsampled_clients: Literal["slot", "mean", "own"] = Field(
        "own",
        title=Smoothing.model_fields["unsampled_clients"].title,
        description=Smoothing.model_fields["unsampled_clients"].description,
    )

    def guarantee(self, world: World) -> Guarantee:
        guarantee = super().guarantee(world)
        if not self.noise:
            return guarantee
        reason = "; smoothing uses nothing but the uploads, which are private already, and costs no more"
        return replace(guarantee, reason=guarantee.reason + reason)
