"""Inverting Gradients: the angle between gradients, a little total variation, and signed steps (Geiping et al. 2020).

Paper → here:  1 - cos → picture_angle,  α_TV → smoothness,  signed Adam → signed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.problem import InversionProblem, total_variation
from engine.attacks.pictures.search import descend, grey_noise, step_decay
from engine.capabilities import HasIterations
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess

SMOOTHNESS = 0.01  # the weight of the total variation
# Normalisation hides brightness and contrast from the gradient. More smoothness makes up for part of it. On average of
# two or three pictures, 0.1 gives 5 to 8 dB more than 0.01 with ConvNet of 16 to 96 channels, and 5 to 7 dB more with
# AlexNet. The upload of a wide ConvNet determines more, and 0.1 blurs its pictures: with 128 channels and 600
# iterations, 0.03 gives 27.9 dB, 0.1 gives 21.8 dB and 0.01 gives 23.4 dB.
NORMALISED_SMOOTHNESS = 0.1
WIDE_SMOOTHNESS = 0.03


def as_number(schema: dict[str, Any]) -> None:
    """Shows the field as the number that scripts read in `list attacks --json`, not as a number or null."""
    number = schema.pop("anyOf")[0]
    schema.update(number, default=SMOOTHNESS)


@ATTACKS.add("inverting-gradients", title="Inverting Gradients", source="arXiv:2003.14053")
class InvertingGradients(HasIterations, PictureAttack):
    """Compares only the direction of gradients, so it works on networks with ReLU and on trained networks."""

    leaves: ClassVar[float] = 0.06
    iterations: int = Field(1600, ge=1, le=100_000, title="iterations", description="Steps of the descent.")
    lr: float = Field(0.1, gt=0, le=10, title="step", description="How far every pixel moves in one step, at first.")
    smoothness: float | None = Field(
        None,
        ge=0,
        le=100,
        title="smoothness",
        json_schema_extra=as_number,
        description=(
            "Weight of the total variation, of pixels in [0, 1]. By default "
            f"{NORMALISED_SMOOTHNESS:g} for models that normalise their activations "
            f"({WIDE_SMOOTHNESS:g} for a ConvNet of 128 channels or more), and {SMOOTHNESS:g} for others."
        ),
    )

    def suited_to(self, *, normalises: bool, wide: bool) -> Self:
        if self.smoothness is not None:
            return self
        if not normalises:
            return self.with_(smoothness=SMOOTHNESS)
        return self.with_(smoothness=WIDE_SMOOTHNESS if wide else NORMALISED_SMOOTHNESS)

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior
        problem = InversionProblem.of(exposure, module)
        smoothness = self.smoothness
        assert smoothness is not None, "`suited_to` chooses the smoothness before an attack starts"

        def objective(pictures: Tensor) -> Tensor:
            return problem.picture_angle(pictures, problem.labels) + smoothness * total_variation(pictures)

        start = grey_noise(problem, context.seeds.rng("start"))
        return descend(problem, start, objective, iterations=self.iterations, lr=self.lr, decay=step_decay, signed=True)
