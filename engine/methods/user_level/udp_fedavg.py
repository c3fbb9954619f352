"""UDP-FedAvg: each client clips its whole update and adds noise (Algorithm 1 of arXiv:2402.07002).

Paper → here:  σ → noise,  C → clip,  η → server-step,  K → sampled (a constant),  S_t → the cohort.
"""

from __future__ import annotations

from engine.methods.base import METHODS
from engine.methods.user_level.base import UserLevel


@METHODS.add("udp-fedavg", title="UDP-FedAvg", source="arXiv:2402.07002")
class UDPFedAvg(UserLevel):
    """Each client clips its update to a bound and adds noise, so the result hides any single client."""
