"""FedCEO: UDP-FedAvg whose server now and then smooths all models as one tensor (arXiv:2402.07002).

Paper → here:  λ → smoothing,  ϑ → growth,  I → every,  Ŵ_k → the slices,  threshold → ϑ^(t/I) / 2λ.

Algorithm 2, line by line: clients clip and noise their updates (base_user.py); every I rounds the server stacks their
models and lowers the singular values of every frequency (base_smoothing.py, spectrum.py), and the next clients start
from the slices. What all this costs stands here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from engine.methods.averaging.base import step_field
from engine.methods.base import METHODS
from engine.methods.smoothing.base import Smoothing
from engine.methods.user_level.base import UserLevel
from engine.records import Gaussian, Guarantee, Release, World


@METHODS.add("fedceo", title="FedCEO", source="arXiv:2402.07002")
class FedCEO(Smoothing, UserLevel):
    """UDP-FedAvg, and every few rounds the server removes what the noisy models of a round do not share."""

    server_step: float = step_field(0.1)

    def releases(self, world: World, round: int, cohort: Sequence[int]) -> tuple[Release, ...]:
        if self.unsampled_clients == "mean" or not cohort or not self.smooths(round):
            return super().releases(world, round, cohort)
        # a slice is one noisy upload in a new dress: whoever is given slices has seen the uploads
        who = tuple(cohort)
        seen = Gaussian(self.noise / (1.0 if self.noise_split == "full-local" else math.sqrt(len(who))))
        return tuple(Release(view, seen, who) for view in ("server", "outsider", "client"))

    def guarantee(self, world: World) -> Guarantee:
        told = super().guarantee(world)
        if self.unsampled_clients == "mean" or not self.noise:
            return told
        why = "; the slices of a smoothing count as released, as if every upload in it had been shown"
        return replace(told, reason=told.reason + why)
