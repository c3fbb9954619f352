"""DP-FedAvg, record level: every client trains with DP-SGD (Truex 2019, as in arXiv:2302.01068).

Paper → here:  σ → noise,  C → clip (per example),  B → batch (the expected one),  q = B / n_k.

The code published with FedCEO computes its UDP-FedAvg like this. The version in that paper is `udp-fedavg`.
"""

from __future__ import annotations

from typing import ClassVar

from engine.capabilities import Suggestion
from engine.methods.base import METHODS
from engine.methods.record_level.base import RecordLevel


@METHODS.add("dp-fedavg", title="DP-FedAvg (record level)", source="arXiv:2302.01068")
class DPFedAvg(RecordLevel):
    """Each client trains with noise on every step, so that its upload hides any single picture."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("Noise on each step", 4),)
