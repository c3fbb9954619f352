"""Walking from noise to pictures: the descent that most attacks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from engine.inversion import Riddle, moments
from engine.records import Guess

Objective = Callable[[Tensor, Mapping[str, Tensor]], Tensor]  # of the pictures, and the upload they would make


def grey_noise(riddle: Riddle, rng: torch.Generator, spread: float = 0.1) -> Tensor:
    """Where a descent begins: middle grey with a little noise, (m, channels, height, width)."""
    return 0.5 + spread * torch.randn(riddle.many, *riddle.shape, generator=rng)


def cosine(share: float) -> float:
    """A pace that falls from 1 to 0 along half a wave."""
    return 0.5 * (1 + math.cos(math.pi * share))


def stairs(share: float) -> float:
    """A pace that falls to a tenth after three, five and seven eighths of the way."""
    return float(0.1 ** sum(share >= step / 8 for step in (3, 5, 7)))


def descend(
    riddle: Riddle,
    start: Tensor,
    objective: Objective,
    *,
    iterations: int,
    lr: float,
    pace: Callable[[float], float] = cosine,
    signed: bool = False,
    kick: Callable[[], Tensor] | None = None,
) -> Iterator[Guess]:
    """Adam on the pixels, which stay in their box; a guess at each moment that is shown."""
    labels, shown = riddle.labels, moments(iterations)
    pictures = start.clone().requires_grad_()
    adam = torch.optim.Adam([pictures], lr=lr)
    yield guess(riddle, 0, iterations, start, labels, math.inf)
    for iteration in range(1, iterations + 1):
        loss = objective(pictures, riddle.upload(pictures, labels))
        (slope,) = torch.autograd.grad(loss, pictures)
        if kick is not None:
            slope = slope + kick()
        pictures.grad = slope.sign() if signed else slope
        adam.param_groups[0]["lr"] = lr * pace((iteration - 1) / iterations)
        adam.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
        if iteration in shown:
            yield guess(riddle, iteration, iterations, pictures, labels, float(loss.detach()))


def guess(riddle: Riddle, iteration: int, iterations: int, pictures: Tensor, labels: Tensor, loss: float) -> Guess:
    """What is believed now, as pixels, with the share it leaves open."""
    seen = pictures.detach().clamp(0, 1).clone()
    return Guess(iteration, iterations, seen, labels, loss, riddle.unexplained(seen, labels), riddle.yardstick)
