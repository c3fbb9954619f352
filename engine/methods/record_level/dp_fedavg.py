"""DP-FedAvg, record level: every client trains by DP-SGD (Truex 2019, as in arXiv:2302.01068).

Paper → here:  σ → noise,  C → clip (per example),  B → batch (the expected one),  q = B / n_k.

It is also UDP-FedAvg as the code published with FedCEO computes it; as that paper writes it, it is `udp-fedavg`.
"""

from __future__ import annotations

from engine.methods.base import METHODS
from engine.methods.record_level.base import RecordLevel


@METHODS.add("dp-fedavg", title="DP-FedAvg (record level)", source="arXiv:2302.01068")
class DPFedAvg(RecordLevel):
    """Each client trains with noise on every step, so that no single picture of it stands out in what it sends."""
