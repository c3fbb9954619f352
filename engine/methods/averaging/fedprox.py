"""FedProx: FedAvg with a term that keeps each client near the server's model (arXiv:1812.06127).

Paper → here:  μ / 2 · ||w - w_t||² → mu · ||w - w_t||².

The factor is written without the half, as in FedLAP (arXiv:2302.01068) and its published code: its 0.1 is 0.1 here,
and a μ of Li et al. is half as large here.
"""

from __future__ import annotations

from engine.methods.averaging.base import Proximal
from engine.methods.base import METHODS
from engine.records import Guarantee, World


@METHODS.add("fedprox", title="FedProx", source="arXiv:1812.06127")
class FedProx(Proximal):
    """FedAvg whose clients are pulled back towards the server's model at each step; nothing is protected."""

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "every upload leaves as it is: no clipping and no noise")
