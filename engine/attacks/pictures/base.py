"""What picture attacks share."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor

from engine.attacks.base import Attack
from engine.attacks.pictures.problem import InversionProblem
from engine.attacks.pictures.search import newton
from engine.records import Guess


class ByCurvature(Attack):
    """What attacks share that walk by L-BFGS on the squared distance."""

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

    def walk(self, problem: InversionProblem, start: Tensor, belief: Tensor | None = None) -> Iterator[Guess]:
        return newton(
            problem,
            start,
            belief,
            iterations=self.iterations,
            lr=self.lr,
            gain=self.gain,
            search=self.search,
            tolerance=self.tolerance,
        )
