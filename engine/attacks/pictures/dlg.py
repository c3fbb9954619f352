"""Deep Leakage from Gradients: pictures and labels looked for together, by curvature (Zhu et al. 2019).

Paper → here:  D = ||∇W' - ∇W||² → distance,  η → lr,  n → iterations,  x', y' ~ N(0, 1) → start.
L-BFGS leaves out curvature below a fixed size, so a distance that is small by nature walks on blindly. Here the
distance is a share of the upload times `gain`; the paper's own stands at a gain of the upload's squared norm.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from engine.attacks.base import ATTACKS, Prior
from engine.attacks.pictures.base import ByCurvature
from engine.attacks.pictures.problem import InversionProblem
from engine.records import Exposure, Guess
from engine.seeds import Seeds


@ATTACKS.add("dlg", title="DLG", source="arXiv:1906.08935")
class Dlg(ByCurvature):
    """Looks for pictures and labels together until they give the same gradient. Made for smooth networks."""

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior
        problem, rng = InversionProblem.of(exposure, module), seeds.rng("start")
        start = torch.randn(problem.many, *problem.shape, generator=rng)
        belief = torch.randn(problem.many, problem.classes, generator=rng)
        return self.walk(problem, start, belief)
