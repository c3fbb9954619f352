"""Arithmetic on weights: mappings from a parameter's name to its tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from engine.errors import RunFailed

Tensors = Mapping[str, Tensor]


def zeros(like: Tensors) -> dict[str, Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in like.items()}


def add(first: Tensors, second: Tensors, factor: float = 1.0) -> dict[str, Tensor]:
    """first + factor * second."""
    return {name: torch.add(first[name], second[name], alpha=factor) for name in first}


def subtract(first: Tensors, second: Tensors) -> dict[str, Tensor]:
    return {name: first[name] - second[name] for name in first}


def scale(tensors: Tensors, factor: float) -> dict[str, Tensor]:
    return {name: tensor * factor for name, tensor in tensors.items()}


def total(several: Iterable[Tensors], shares: Sequence[float] | None = None) -> dict[str, Tensor]:
    """The sum, in the order given, so that it is the same to the bit whoever finished first."""
    result: dict[str, Tensor] = {}
    for place, tensors in enumerate(several):
        share = 1.0 if shares is None else shares[place]
        for name, tensor in tensors.items():
            if name in result:
                result[name].add_(tensor, alpha=share)
            else:
                result[name] = tensor * share
    return result


def norm(tensors: Tensors) -> float:
    """The L2 norm of everything together, in double precision."""
    return float(sum(float(tensor.double().square().sum()) for tensor in tensors.values()) ** 0.5)


def clip(tensors: Tensors, bound: float) -> dict[str, Tensor]:
    """The same direction with norm at most `bound`; one norm over everything that leaves."""
    length = norm(tensors)
    if not math.isfinite(length):
        raise RunFailed(
            "an update is no longer made of finite numbers: no clip can bound it", "Lower the learning rate"
        )
    if length <= bound:
        return dict(tensors)
    # one part in a million shorter, so that rounding to single precision never ends above the bound
    return scale(tensors, bound / length * (1 - 1e-6))


def count(tensors: Tensors) -> int:
    return sum(tensor.numel() for tensor in tensors.values())


def finite(tensors: Tensors) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
