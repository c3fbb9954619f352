"""FedSGD: clients upload one gradient per batch, and the server averages them (arXiv:1602.05629).

Paper → here:  one exchange per batch → batches `every`,  one batch per round → batches `one`.
"""

from __future__ import annotations

from engine.methods.base import METHODS
from engine.methods.per_batch.base import PerBatch
from engine.records import Guarantee, World


@METHODS.add("fedsgd", title="FedSGD", source="arXiv:1602.05629")
class FedSGD(PerBatch):
    """Clients send what they learnt from one batch at a time, which is the easiest target for an attacker."""

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "every gradient leaves as it is: no clipping and no noise")
