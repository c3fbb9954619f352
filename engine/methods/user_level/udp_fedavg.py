"""UDP-FedAvg: each client clips its whole update and adds noise (Algorithm 1 of arXiv:2402.07002).

Paper → here:  σ → noise,  C → clip,  η → server-step,  K → sampled (a constant),  S_t → the cohort.
"""

from __future__ import annotations

from typing import ClassVar

from engine.capabilities import Suggestion
from engine.methods.base import METHODS
from engine.methods.user_level.base import UserLevel


@METHODS.add("udp-fedavg", title="UDP-FedAvg", source="arXiv:2402.07002")
class UDPFedAvg(UserLevel):
    """Each client limits the length of its update and adds noise to it, so that the result hides any single client."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (
        Suggestion("Noise by each phone", 2, {"noise-split": "full-local"}),
        Suggestion("Noise shared by the crowd", 3, {"noise-split": "paper"}),
    )
