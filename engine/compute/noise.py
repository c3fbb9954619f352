"""Noise laws. The caller gives the generator."""

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
        noise[name] = torch.empty(tensor.shape).normal_(0.0, std, generator=rng).to(tensor.device)
    return noise


def gaussian_added(tensors: Mapping[str, Tensor], std: float, rng: torch.Generator) -> dict[str, Tensor]:
    """The tensors with new Gaussian noise on every coordinate."""
    noise = gaussian(tensors, std, rng)
    return {name: tensor + noise[name] for name, tensor in tensors.items()}
