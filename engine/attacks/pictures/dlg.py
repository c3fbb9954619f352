"""Deep Leakage from Gradients: L-BFGS optimises pictures and labels together (Zhu et al. 2019).

Paper → here:  D = ||∇W' - ∇W||² → distance,  η → lr,  n → iterations,  x', y' ~ N(0, 1) → start, label_logits.
L-BFGS ignores curvature below a fixed size, so it loses its way where the distance is small by nature. Here the
distance is a share of the upload times `gain`. The paper's own distance has the upload's squared norm as its gain.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import Prior
from engine.attacks.pictures.lbfgs import LbfgsAttack
from engine.attacks.pictures.problem import InversionProblem
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess


@ATTACKS.add("dlg", title="DLG", source="arXiv:1906.08935")
class Dlg(LbfgsAttack):
    """Optimises pictures and labels together until they give the same gradient. Made for smooth networks."""

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        rng = context.seeds.rng("start")
        start = torch.randn(problem.count, *problem.shape, generator=rng, device="cpu").to(problem.device)
        label_logits = torch.randn(problem.count, problem.classes, generator=rng, device="cpu").to(problem.device)
        return self.minimise(problem, start, label_logits)
