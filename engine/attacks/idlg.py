"""Improved DLG: labels are read off the upload, and pictures alone are looked for by curvature (Zhao et al. 2020).

Paper → here:  c where ∇W_L < 0 → Riddle.labels,  D = ||∇W' - ∇W||² → distance,  η → lr,  x' ~ N(0, 1) → start.
The distance is a share of the upload times `gain`: L-BFGS would take the curvature of a small one for zero.
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


@ATTACKS.add("idlg", title="iDLG", source="arXiv:2001.02610")
class Idlg(Attack):
    """Reads the labels off the last layer, then looks for pictures as DLG does. Made for smooth networks."""

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
        riddle = Riddle.of(exposure, module)
        start = torch.randn(riddle.many, *riddle.shape, generator=seeds.rng("start"))
        return newton(
            riddle,
            start,
            iterations=self.iterations,
            lr=self.lr,
            gain=self.gain,
            search=self.search,
            tolerance=self.tolerance,
        )
