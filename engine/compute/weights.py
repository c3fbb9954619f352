"""Arithmetic on weights, which map the name of a parameter to its tensor."""

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
    """The sum in the given order. So it is bitwise the same whichever client finishes first."""
    result: dict[str, Tensor] = {}
    for index, tensors in enumerate(several):
        share = 1.0 if shares is None else shares[index]
        for name, tensor in tensors.items():
            if name in result:
                result[name].add_(tensor, alpha=share)
            else:
                result[name] = tensor * share
    return result


def norm(tensors: Tensors) -> float:
    """The L2 norm over all tensors together, in double precision."""
    squares = sum(float(tensor.double().square().sum()) for tensor in tensors.values())
    return float(squares**0.5)


def clip(tensors: Tensors, bound: float) -> dict[str, Tensor]:
    """The tensors scaled to a norm of at most `bound`, with one norm over all of them.

    The noise is calibrated to this bound. A norm per tensor would let a client send more than the accounting assumes.
    """
    length = norm(tensors)
    if not math.isfinite(length):
        raise RunFailed(
            "an update contains values that are not finite numbers, so it cannot be clipped", "Lower the learning rate"
        )
    if length <= bound:
        return dict(tensors)
    # One millionth shorter: rounding to single precision must not exceed the bound, which the accounting relies on.
    return scale(tensors, bound / length * (1 - 1e-6))


def count(tensors: Tensors) -> int:
    return sum(tensor.numel() for tensor in tensors.values())


def finite(tensors: Tensors) -> bool:
    """Whether every value is a finite number."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())
