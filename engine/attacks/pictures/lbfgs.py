"""The base of the picture attacks that use L-BFGS."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor

from engine.attacks.pictures.base import PictureAttack
from engine.attacks.pictures.problem import InversionProblem
from engine.attacks.pictures.search import lbfgs
from engine.capabilities import HasIterations
from engine.records import Guess


class LbfgsAttack(HasIterations, PictureAttack):
    """An attack that minimises the squared distance with L-BFGS."""

    iterations: int = Field(300, ge=1, le=10_000, title="iterations", description="Each is twenty steps of L-BFGS.")
    lr: float = Field(1.0, gt=0, le=10, title="step", description="Share of each step that is taken.")
    gain: float = Field(
        1e5,
        gt=0,
        le=1e12,
        title="gain",
        description="Multiplies the distance, so that L-BFGS does not round its curvature to zero.",
    )
    search: bool = Field(
        True,
        title="line search",
        description="Tries several lengths for each step, which prevents divergence; the paper does not.",
    )
    tolerance: float = Field(
        1e-11,
        ge=0,
        le=1,
        title="tolerance",
        description="The search ends when at most this share of the upload is unexplained.",
    )

    def minimise(self, problem: InversionProblem, start: Tensor, label_logits: Tensor | None = None) -> Iterator[Guess]:
        return lbfgs(
            problem,
            start,
            label_logits,
            iterations=self.iterations,
            lr=self.lr,
            gain=self.gain,
            search=self.search,
            tolerance=self.tolerance,
        )
