"""DP-FedProx, record level: DP-SGD in every client, pulled back towards the server's model (arXiv:2302.01068, table 2).

Paper → here:  μ → mu,  σ → noise,  C → clip (per example).

The pull is added after the noise. It reads no data, so it costs no ε. In the code published with FedLAP it is added to
the loss, where Opacus drops it: that DP-FedProx is DP-FedAvg with another clip.
"""

from __future__ import annotations

from engine.methods.averaging.base import Proximal
from engine.methods.base import METHODS, Method
from engine.methods.record_level.base import RecordLevel


@METHODS.add("dp-fedprox", title="DP-FedProx (record level)", source="arXiv:2302.01068")
class DPFedProx(RecordLevel, Proximal):
    """DP-FedAvg whose clients are pulled back towards the server's model at each step."""

    def baseline(self) -> Method | None:
        return METHODS.make({"name": "fedprox", "mu": self.mu, "server_step": self.server_step})
