"""FedCEO as its published code computes it: DP-SGD in every client, and the server's smoothing (arXiv:2402.07002).

Paper → here:  σ_g → noise,  C → clip (per example),  λ → smoothing,  ϑ → growth,  I → every.

The algorithm as written protects a whole client by noise on its update: that is `fedceo`. The code protects one
picture by noise on every local step, and neither clips an update nor scales it by η: without the smoothing it is
`dp-fedavg`. The two promise different things, so their ε are never compared. As in the code, whoever took part in a
smoothing and in the round after it starts from its own slice. The code gives all others the model they had last,
however old; here they start from the mean.
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
    """Clients train with noise on every step, and every few rounds the server smooths all their models as one."""

    unsampled_clients: Literal["slot", "mean", "own"] = Field(
        "own",
        title=Smoothing.model_fields["unsampled_clients"].title,
        description=Smoothing.model_fields["unsampled_clients"].description,
    )

    def guarantee(self, world: World) -> Guarantee:
        told = super().guarantee(world)
        why = "; smoothing uses nothing but the uploads, which are private already, and costs no more"
        return replace(told, reason=told.reason + why) if self.noise else told
