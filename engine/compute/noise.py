"""Noise laws. The caller gives the generator, which draws on the processor."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def gaussian(like: Mapping[str, Tensor], std: float, rng: torch.Generator) -> dict[str, Tensor]:
    """Independent N(0, std²) with the shapes of `like`, drawn in the order of its names."""
    if std == 0:
        return {name: torch.zeros_like(tensor) for name, tensor in like.items()}
    noise: dict[str, Tensor] = {}
    for name, tensor in like.items():
        drawn = torch.empty(tensor.shape, device="cpu").normal_(0.0, std, generator=rng)
        noise[name] = drawn.to(tensor.device)
    return noise


def laplace(like: Mapping[str, Tensor], scale: float, rng: torch.Generator) -> dict[str, Tensor]:
    """Independent Laplace noise of this scale, in the order of the names.

    It is the difference of two exponentials. The usual -b · sign(u) · log1p(-2|u|) of a float32 uniform is infinite
    once in 2^24 draws, which ends a run.
    """
    noise: dict[str, Tensor] = {}
    for name, tensor in like.items():
        first = torch.empty(tensor.shape, dtype=torch.float64, device="cpu").exponential_(generator=rng)
        second = torch.empty(tensor.shape, dtype=torch.float64, device="cpu").exponential_(generator=rng)
        noise[name] = (scale * (first - second)).to(tensor.device, tensor.dtype)
    return noise


def binomial(like: Mapping[str, Tensor], coins: int, rng: torch.Generator) -> dict[str, Tensor]:
    """Independent centred binomial noise: the number of heads of `coins` fair coins, minus half of them."""
    noise: dict[str, Tensor] = {}
    for name, tensor in like.items():
        count = torch.full(tensor.shape, float(coins), dtype=torch.float64, device="cpu")
        heads = torch.binomial(count, torch.full_like(count, 0.5), generator=rng)
        noise[name] = (heads - coins / 2).to(tensor.device, tensor.dtype)
    return noise


def gaussian_added(tensors: Mapping[str, Tensor], std: float, rng: torch.Generator) -> dict[str, Tensor]:
    """The tensors with new Gaussian noise on every coordinate."""
    noise = gaussian(tensors, std, rng)
    return {name: tensor + noise[name] for name, tensor in tensors.items()}
