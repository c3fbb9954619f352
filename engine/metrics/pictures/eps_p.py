"""The leakage score of FedEM: how close the guesses of an attack come to the truth, averaged over its iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from torch import Tensor

from engine.metrics.base import METRICS
from engine.metrics.pictures.base import PictureMetric
from engine.metrics.pictures.pairing import paired


@METRICS.add("eps-p", title="Leakage score εp", source="FedEM (under review), equation 9")
class EpsP(PictureMetric):
    """Leakage score: the share of the largest possible distance that an attack closed; not an ε of privacy.

    (D - mean over the guesses of ‖x_i - x‖) / D with D = √n for n pixel values in [0, 1]. The score is 1 where every
    guess equals the original. The mean includes the first guesses, so a slow attack looks private.
    """

    better = "higher"

    iterates: Literal["all", "last"] = Field(
        "all",
        title="iterations",
        description="`all` averages over every guess, as the paper does; `last` uses the last guess.",
    )

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        return 1 - float((guess - truth).norm()) / math.sqrt(truth.numel())

    def measure_path(self, path: Sequence[Tensor], truth: Tensor) -> float:
        """The score of a path; 0 without any guess."""
        guesses = path if self.iterates == "all" else path[-1:]
        if not guesses:
            return 0.0
        return math.fsum(self.measure(guess, truth) for guess in guesses) / len(guesses)
