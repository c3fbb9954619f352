"""FedCEO: UDP-FedAvg whose server smooths all models as one tensor every few rounds (arXiv:2402.07002).

Paper → here:  λ → smoothing,  ϑ → growth,  I → every,  Ŵ_k → the slices,  threshold → ϑ^(t/I) / 2λ.

Algorithm 2 has three steps. Clients clip their updates and add noise (user_level/base.py). Every I rounds the server
stacks the clients' models and lowers the singular values of every frequency (smoothing/base.py, tensor_svd.py). The
clients of the next round start from the slices. This file holds the privacy cost of the slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from engine.capabilities import Suggestion, server_step_field
from engine.methods.base import METHODS
from engine.methods.smoothing.base import Smoothing
from engine.methods.user_level.base import UserLevel
from engine.records import Gaussian, Guarantee, Release, World


@METHODS.add("fedceo", title="FedCEO", source="arXiv:2402.07002")
class FedCEO(Smoothing, UserLevel):
    """Each client adds noise to its update, and every few rounds the server removes what the models do not share."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("FedCEO", 5, {"noise-split": "full-local"}),)

    server_step: float = server_step_field(0.1)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        if self.unsampled_clients == "mean" or not cohort or not self.smooths(round):
            return super().releases(world, round, cohort)
        # Privacy (user-level ε of every view): a slice is a function of noisy uploads, so each view that receives
        # slices pays for single uploads. A charge for the sum alone would be too low.
        share = 1.0 if self.noise_split == "full-local" else math.sqrt(len(cohort))
        law = Gaussian(self.noise / share)
        return tuple(Release(view, law, cohort) for view in ("server", "outsider", "client"))

    def guarantee(self, world: World) -> Guarantee:
        guarantee = super().guarantee(world)
        if self.unsampled_clients == "mean" or not self.noise:
            return guarantee
        reason = "; the slices of a smoothing count as released, as if every upload in it had been shown"
        return replace(guarantee, reason=guarantee.reason + reason)
