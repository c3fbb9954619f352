"""The Dirichlet partition: one parameter sets how much clients differ."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from engine.partitions.base import PARTITIONS, Partition


@PARTITIONS.add("dirichlet", title="Dirichlet", source="Hsu, Qi, Brown 2019; Yurochkin et al. 2019")
class Dirichlet(Partition):
    """A Dirichlet draw gives each client its share of each class: a small α makes clients very different."""

    remedy: ClassVar[str] = "Raise alpha, take fewer clients or more pictures"

    alpha: float = Field(
        0.5,
        gt=0,
        le=1e6,
        title="α",
        description="Near 0 each class belongs to one client; large values come close to IID.",
    )

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        # Gamma(α) = Gamma(α + 1) · U^(1/α). In logs, because for a small α the numbers would all be zero.
        shape = torch.full((len(frequencies), clients), self.alpha, dtype=torch.float64)
        gammas = torch._standard_gamma(shape + 1, generator=rng).log()
        uniforms = torch.rand(shape.shape, generator=rng, dtype=torch.float64)
        uniforms = uniforms.clamp_min(torch.finfo(torch.float64).tiny)
        return (gammas + uniforms.log() / shape).softmax(1)
