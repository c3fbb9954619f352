"""The leakage score of FedEM: how near the guesses of an attack came to the truth, iteration by iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from torch import Tensor

from engine.metrics.base import METRICS, Metric
from engine.metrics.pictures.pairing import paired


@METRICS.add("eps-p", title="Leakage score εp", source="FedEM (under review), equation 9")
class EpsP(Metric):
    """Leakage score, the share of the largest possible distance that an attack closed: no ε of differential privacy.

    (D - mean over the guesses of ‖x_i - x‖) / D with D = √n for n pixel values in [0, 1]: 1 where every guess is the
    very picture. The mean runs over all guesses an attack told, first ones included: a slow attack looks private.
    """

    better = "higher"

    iterates: Literal["all", "last"] = Field(
        "all", title="iterations", description="`all` averages over every guess, as the paper does; `last` is its end."
    )

    def measure(self, guess: Tensor, truth: Tensor) -> float:
        guess, truth = paired(self.name, guess, truth)
        return 1 - float((guess - truth).norm()) / math.sqrt(truth.numel())

    def over(self, path: Sequence[Tensor], truth: Tensor) -> float:
        """Without any guess it is 0: nobody attacked."""
        told = path if self.iterates == "all" else path[-1:]
        return math.fsum(self.measure(guess, truth) for guess in told) / len(told) if told else 0.0
