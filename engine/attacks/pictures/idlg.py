"""Improved DLG: labels are read off the last layer, then L-BFGS optimises the pictures alone (Zhao et al. 2020).

Paper → here:  c where ∇W_L < 0 → InversionProblem.labels,  D = ||∇W' - ∇W||² → distance,  η → lr,
x' ~ N(0, 1) → start.  The distance is a share of the upload times `gain`, because L-BFGS rounds the curvature of a
small distance to zero.
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


@ATTACKS.add("idlg", title="iDLG", source="arXiv:2001.02610")
class Idlg(LbfgsAttack):
    """Reads the labels off the last layer, then optimises the pictures as DLG does. Made for smooth networks."""

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        rng = context.seeds.rng("start")
        start = torch.randn(problem.count, *problem.shape, generator=rng, device="cpu").to(problem.device)
        return self.minimise(problem, start)
