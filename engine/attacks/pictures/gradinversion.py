"""GradInversion: several candidates that hold on to one another, and noise that shakes them (Yin et al. 2021).

Paper → here:  α_TV → smoothness,  α_l2 → shrinking,  α_group → agreement,  x̂_g in G → candidates,  α_n → noise.
The paper's pull towards the statistics of batch normalisation is missing: no model here has such layers. What its
candidates agree on is the mean, pixel by pixel; the labels may hold a class more than once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.attacks.pictures.problem import InversionProblem, moments, roughness
from engine.attacks.pictures.search import apart, cosine, grey_noise, guess
from engine.records import Exposure, Guess
from engine.seeds import Seeds

WARM_UP = 50  # steps that grow until they have their full size


@ATTACKS.add("gradinversion", title="GradInversion", source="arXiv:2104.07586")
class Gradinversion(Attack):
    """Several candidates at once, shaken by noise and drawn to their mean. Its pull to batch statistics is left out:
    no model here has any."""

    leaves: ClassVar[float] = 3e-3

    iterations: int = Field(1000, ge=1, le=100_000, title="iterations", description="Steps of every candidate.")
    lr: float = Field(0.1, gt=0, le=10, title="step", description="How far a pixel moves in one step, at most.")
    candidates: int = Field(
        2, ge=1, le=16, title="candidates", description="How many are looked for side by side; each costs the same."
    )
    smoothness: float = Field(
        1e-4, ge=0, le=100, title="smoothness", description="Weight of the total variation, of pixels in [0, 1]."
    )
    shrinking: float = Field(
        1e-6, ge=0, le=100, title="shrinking", description="Weight of the mean square of the pixels, normalised."
    )
    agreement: float = Field(
        0.01, ge=0, le=100, title="agreement", description="Weight of the squared distance to the candidates' mean."
    )
    noise: float = Field(
        0.05, ge=0, le=10, title="noise", description="How hard every step is shaken, as a share of its size."
    )

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior
        problem, begin, shake = InversionProblem.of(exposure, module), seeds.rng("start"), seeds.rng("noise")
        pool = torch.stack([grey_noise(problem, begin) for _ in range(self.candidates)])  # (candidates, m, ...)
        adam, last, labels = torch.optim.Adam([pool], lr=self.lr), self.iterations, problem.labels
        shown = moments(last)
        yield guess(problem, 0, last, pool[0], labels, math.inf)
        for iteration in range(1, last + 1):
            losses, pool.grad = self.slopes(problem, pool)
            size = adam.param_groups[0]["lr"] = self.lr * pace(iteration, last)
            adam.step()
            pool.add_(torch.randn(pool.shape, generator=shake), alpha=size * self.noise).clamp_(0, 1)
            if iteration in shown:
                best = min(range(self.candidates), key=losses.__getitem__)
                yield guess(problem, iteration, last, pool[best], labels, losses[best])

    def slopes(self, problem: InversionProblem, pool: Tensor) -> tuple[list[float], Tensor]:
        """The loss of every candidate, and what it would give to move its pixels."""
        mean, losses, slopes = pool.mean(0), [], []
        for one in pool:
            pictures = one.clone().requires_grad_()
            loss = (
                apart(problem, pictures, problem.labels)
                + self.smoothness * roughness(pictures)
                + self.shrinking * problem.normal(pictures).square().mean()
                + self.agreement * problem.normal(pictures).sub(problem.normal(mean)).square().mean()
            )
            slopes.append(torch.autograd.grad(loss, pictures)[0])
            losses.append(float(loss.detach()))
        return losses, torch.stack(slopes)


def pace(iteration: int, last: int) -> float:
    """Steps grow while it warms up, then shrink along half a wave."""
    warm = min(WARM_UP, last // 4)
    return min(1.0, iteration / (warm + 1)) * cosine(max(0, iteration - warm - 1) / (last - warm))
