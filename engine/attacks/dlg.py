"""Deep Leakage from Gradients: pictures and labels looked for together, by curvature (Zhu et al. 2019).

Paper → here:  D = ||∇W' - ∇W||² → distance,  η → lr,  n → iterations,  x', y' ~ N(0, 1) → start.
L-BFGS leaves out curvature below a fixed size, so a distance that is small by nature walks on blindly. Here the
distance is a share of the upload times `gain`; the paper's own stands at a gain of the upload's squared norm.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import nn

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.descent import newton
from engine.inversion import Riddle
from engine.records import Exposure, Guess
from engine.seeds import Seeds


@ATTACKS.add("dlg", title="DLG", source="arXiv:1906.08935")
class Dlg(Attack):
    """Looks for pictures and labels together until they give the same gradient. Made for smooth networks."""

    iterations: int = Field(300, ge=1, le=10_000, title="iterations", description="Times twenty steps of L-BFGS.")
    lr: float = Field(1.0, gt=0, le=10, title="step", description="Share of each step that is taken.")
    gain: float = Field(
        1e5,
        gt=0,
        le=1e12,
        title="gain",
        description="What the distance is multiplied by, so that L-BFGS does not take its curvature for zero.",
    )
    search: bool = Field(
        True,
        title="line search",
        description="Tries several lengths for each step, which keeps it from diverging; the paper does not.",
    )
    tolerance: float = Field(
        1e-11, ge=0, le=1, title="tolerance", description="Ends once no more than this share of the upload is open."
    )

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior
        riddle, rng = Riddle.of(exposure, module), seeds.rng("start")
        start = torch.randn(riddle.many, *riddle.shape, generator=rng)
        belief = torch.randn(riddle.many, riddle.classes, generator=rng)
        return newton(
            riddle,
            start,
            belief,
            iterations=self.iterations,
            lr=self.lr,
            gain=self.gain,
            search=self.search,
            tolerance=self.tolerance,
        )
