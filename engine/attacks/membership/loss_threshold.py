"""The loss threshold: a model has a lower loss on the records that it was trained on (arXiv:1709.01604)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.attacks.base import ATTACKS
from engine.attacks.membership.base import MembershipAttack
from engine.compute.context import AttackContext
from engine.records import Sight


@ATTACKS.add("loss-threshold", title="Loss threshold", source="arXiv:1709.01604")
class LossThreshold(MembershipAttack):
    """Calls a record a member if the loss of the last model on it is low. It trains nothing."""

    def score(self, sight: Sight, shadows: Sequence[Sight], context: AttackContext) -> Tensor:
        del shadows, context
        # log p - log (1 - p) of the true class has the order of the loss. The loss itself rounds to 0 for all records
        # that the model is sure of.
        logits = sight.logits[-1].double()
        own = logits.gather(1, sight.labels[:, None]).squeeze(1)
        others = logits.scatter(1, sight.labels[:, None], -torch.inf)
        return own - others.logsumexp(1)
