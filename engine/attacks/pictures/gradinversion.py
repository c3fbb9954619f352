"""GradInversion: optimises several candidates that are pulled to their mean and disturbed by noise (Yin et al. 2021).

Paper → here:  α_TV → smoothness,  α_l2 → shrinking,  α_group → agreement,  x̂_g in G → candidates,  α_n → noise.
The paper's term for the statistics of batch normalisation is left out, because no model here has such layers. The
candidates' consensus is their mean, pixel by pixel. The labels may contain a class more than once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import cosine_decay, grey_noise, make_guess, mismatch, shown_iterations
from engine.capabilities import HasIterations
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess

WARM_UP = 50  # steps that grow until they have their full size


@ATTACKS.add("gradinversion", title="GradInversion", source="arXiv:2104.07586")
class Gradinversion(HasIterations, PictureAttack):
    """Optimises several candidates together, disturbed by noise and pulled to their mean. The paper's term for batch
    statistics is left out, because no model here has any."""

    leaves: ClassVar[float] = 3e-3

    iterations: int = Field(1000, ge=1, le=100_000, title="iterations", description="Steps of every candidate.")
    lr: float = Field(0.1, gt=0, le=10, title="step", description="How far a pixel moves in one step, at most.")
    candidates: int = Field(
        2, ge=1, le=16, title="candidates", description="How many are optimised together; each costs the same."
    )
    smoothness: float = Field(
        1e-4, ge=0, le=100, title="smoothness", description="Weight of the total variation, of pixels in [0, 1]."
    )
    shrinking: float = Field(
        1e-6, ge=0, le=100, title="shrinking", description="Weight of the mean square of the normalised pixels."
    )
    agreement: float = Field(
        0.01, ge=0, le=100, title="agreement", description="Weight of the squared distance to the candidates' mean."
    )
    noise: float = Field(0.05, ge=0, le=10, title="noise", description="Noise on every step, as a share of its size.")

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        labels = problem.labels
        start_rng = context.seeds.rng("start")
        noise_rng = context.seeds.rng("noise")
        pool = torch.stack([grey_noise(problem, start_rng) for _ in range(self.candidates)])  # (candidates, m, ...)
        adam = torch.optim.Adam([pool], lr=self.lr)
        last = self.iterations
        shown = shown_iterations(last)
        yield make_guess(problem, 0, last, pool[0], labels, math.inf)
        for iteration in range(1, last + 1):
            losses, pool.grad = self.gradients(problem, pool)
            lr = self.lr * warm_up_decay(iteration, last)
            adam.param_groups[0]["lr"] = lr
            adam.step()
            noise = torch.randn(pool.shape, generator=noise_rng, device="cpu").to(pool.device)
            pool.add_(noise, alpha=lr * self.noise).clamp_(0, 1)
            if iteration in shown:
                best = min(range(self.candidates), key=losses.__getitem__)
                yield make_guess(problem, iteration, last, pool[best], labels, losses[best])

    def gradients(self, problem: InversionProblem, pool: Tensor) -> tuple[list[float], Tensor]:
        """The loss of every candidate, and the gradients of its pixels (candidates, m, ...)."""
        mean = pool.mean(0)
        losses = []
        gradients = []
        for candidate in pool:
            pictures = candidate.clone().requires_grad_()
            loss = (
                mismatch(problem, pictures, problem.labels)
                + self.smoothness * total_variation(pictures)
                + self.shrinking * problem.normalised(pictures).square().mean()
                + self.agreement * problem.normalised(pictures).sub(problem.normalised(mean)).square().mean()
            )
            gradients.append(torch.autograd.grad(loss, pictures)[0])
            losses.append(float(loss.detach()))
        return losses, torch.stack(gradients)


def warm_up_decay(iteration: int, last: int) -> float:
    """The size of a step: it grows during warm-up, then falls along half a cosine wave."""
    warm = min(WARM_UP, last // 4)
    growth = min(1.0, iteration / (warm + 1))
    return growth * cosine_decay(max(0, iteration - warm - 1) / (last - warm))
