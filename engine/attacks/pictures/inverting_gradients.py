"""Inverting Gradients: the angle between gradients, a little total variation, and signed steps (Geiping et al. 2020).

Paper → here:  1 - cos → picture_angle,  α_TV → smoothness,  signed Adam → signed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import descend, grey_noise, step_decay
from engine.capabilities import HasIterations
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess


@ATTACKS.add("inverting-gradients", title="Inverting Gradients", source="arXiv:2003.14053")
class InvertingGradients(HasIterations, PictureAttack):
    """Compares only the direction of gradients, so it works on networks with ReLU and on trained networks."""

    leaves: ClassVar[float] = 0.06
    iterations: int = Field(1600, ge=1, le=100_000, title="iterations", description="Steps of the descent.")
    lr: float = Field(0.1, gt=0, le=10, title="step", description="How far every pixel moves in one step, at first.")
    smoothness: float = Field(
        0.01, ge=0, le=100, title="smoothness", description="Weight of the total variation, of pixels in [0, 1]."
    )

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)

        def objective(pictures: Tensor) -> Tensor:
            return problem.picture_angle(pictures, problem.labels) + self.smoothness * total_variation(pictures)

        start = grey_noise(problem, context.seeds.rng("start"))
        return descend(problem, start, objective, iterations=self.iterations, lr=self.lr, decay=step_decay, signed=True)
