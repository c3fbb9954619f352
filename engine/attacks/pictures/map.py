"""The most probable pictures: squared distance, a bound on the pixels, and as much smoothness as the noise asks for.

Paper → here:  ||u - T(f(x))||² / 2s² → distance,  total variation prior → smoothness.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.attacks.pictures.problem import InversionProblem, roughness
from engine.attacks.pictures.search import descend, grey_noise
from engine.records import Exposure, Guess
from engine.seeds import Seeds


@ATTACKS.add("map", title="Most probable picture", source="the noise-aware form of Zhu et al. 2019")
class Map(Attack):
    """Looks for the picture that best explains the upload, knowing clip and noise. Nearly exact on smooth networks."""

    iterations: int = Field(1500, ge=1, le=100_000, title="iterations", description="Steps of the descent.")
    lr: float = Field(0.05, gt=0, le=10, title="step", description="How far a pixel moves in one step, at first.")
    smoothness: float = Field(
        20.0,
        ge=0,
        le=1000,
        title="smoothness",
        description="How strongly smooth pictures are preferred where noise leaves a choice.",
    )

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        pixels = problem.many * problem.mean.numel() * problem.shape[-1] * problem.shape[-2]
        numbers = sum(tensor.numel() for tensor in problem.goal.values())
        # both sides of the log posterior, times twice the variance over the size of the upload
        weight = 2 * self.smoothness * problem.floor * pixels / numbers

        def posterior(pictures: Tensor) -> Tensor:
            open_ = problem.distance(problem.upload(pictures, problem.labels))
            return open_ + weight * roughness(pictures) if weight else open_

        start = grey_noise(problem, seeds.rng("start"))
        return descend(problem, start, posterior, iterations=self.iterations, lr=self.lr)
