"""The most probable pictures: squared distance, clamped pixels, and smoothness in proportion to the noise.

Paper → here:  ||u - T(f(x))||² / 2s² → distance,  total variation prior → smoothness.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import descend, grey_noise
from engine.capabilities import HasIterations
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess


@ATTACKS.add("map", title="Most probable picture", source="the noise-aware form of Zhu et al. 2019")
class Map(HasIterations, PictureAttack):
    """Finds the picture that best explains the upload, given clip and noise. Nearly exact on smooth networks."""

    iterations: int = Field(1500, ge=1, le=100_000, title="iterations", description="Steps of the descent.")
    lr: float = Field(0.05, gt=0, le=10, title="step", description="How far a pixel moves in one step, at first.")
    smoothness: float = Field(
        20.0,
        ge=0,
        le=1000,
        title="smoothness",
        description="How strongly smooth pictures are preferred where noise leaves a choice.",
    )

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        pixels = problem.count * problem.mean.numel() * problem.shape[-1] * problem.shape[-2]
        # both terms of the log posterior are multiplied by twice the variance over the upload's squared norm
        weight = 2 * self.smoothness * problem.floor * pixels / problem.coordinates

        def objective(pictures: Tensor) -> Tensor:
            distance = problem.distance(problem.upload(pictures, problem.labels))
            return distance + weight * total_variation(pictures) if weight else distance

        start = grey_noise(problem, context.seeds.rng("start"))
        return descend(problem, start, objective, iterations=self.iterations, lr=self.lr)
