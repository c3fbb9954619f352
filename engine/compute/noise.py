"""Noise laws. Each adds new noise to tensors. The caller gives the generator, which draws on the processor.

Privacy: the noise is drawn and added in float64, and the sum is rounded once. The sum of two float32 numbers reveals
whether one of them was this candidate or that one, because the other one must then be a float32 number too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

# Privacy: float32 normals never exceed 5.77 standard deviations, and pairs of them lie on 2^24 radii. A sum of two
# has neither limit. The squares of the shares add up to 1.
SHARES = (0.8, 0.6)

Draw = Callable[[torch.Size], Tensor]  # float64 noise of this shape


def gaussian_added(tensors: Mapping[str, Tensor], std: float, rng: torch.Generator) -> dict[str, Tensor]:
    """The tensors with independent N(0, std²) on every coordinate, drawn in the order of their names."""
    if std == 0:
        return dict(tensors)
    noisy: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        values = torch.empty(tensor.shape, device="cpu")
        total = values.normal_(generator=rng).double().mul_(SHARES[0] * std)
        total.add_(values.normal_(generator=rng), alpha=SHARES[1] * std)
        total = total.to(tensor.device).add_(tensor)
        noisy[name] = values.to(tensor.device).copy_(total)
    return noisy


def laplace_added(tensors: Mapping[str, Tensor], scale: float, rng: torch.Generator) -> dict[str, Tensor]:
    """The tensors with independent Laplace noise of this scale.

    It is the difference of two exponentials. The usual -b · sign(u) · log1p(-2|u|) of a float32 uniform is infinite
    once in 2^24 draws, which ends a run.
    """

    def draw(shape: torch.Size) -> Tensor:
        first = torch.empty(shape, dtype=torch.float64, device="cpu").exponential_(generator=rng)
        second = torch.empty(shape, dtype=torch.float64, device="cpu").exponential_(generator=rng)
        return scale * (first - second)

    return _added(tensors, draw)


def binomial_added(tensors: Mapping[str, Tensor], coins: int, rng: torch.Generator) -> dict[str, Tensor]:
    """The tensors with independent centred binomial noise: the heads of `coins` fair coins, minus half of them."""

    def draw(shape: torch.Size) -> Tensor:
        count = torch.full(shape, float(coins), dtype=torch.float64, device="cpu")
        heads = torch.binomial(count, torch.full_like(count, 0.5), generator=rng)
        return heads - coins / 2

    return _added(tensors, draw)


def _added(tensors: Mapping[str, Tensor], draw: Draw) -> dict[str, Tensor]:
    """The tensors with noise on every coordinate, rounded once to their own type."""
    noisy: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        drawn = draw(tensor.shape).to(tensor.device)
        noisy[name] = drawn.add_(tensor).to(tensor.dtype)
    return noisy
