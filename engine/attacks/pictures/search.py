"""Walking from noise to pictures: the descent that most attacks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.attacks.pictures.problem import InversionProblem, moments
from engine.records import Guess

PATIENCE, PROGRESS = 10, 0.01  # a walk by curvature stalls when ten rounds gain less than one part in a hundred
INNER = 20  # steps of L-BFGS in one iteration, as in the papers
HEARD = 50  # looks at the upload between two guesses: whoever wants to stop is heard then

Objective = Callable[[Tensor], Tensor]  # of the pictures


def grey_noise(problem: InversionProblem, rng: torch.Generator, spread: float = 0.1) -> Tensor:
    """Where a descent begins: middle grey with a little noise, (m, channels, height, width)."""
    return 0.5 + spread * torch.randn(problem.many, *problem.shape, generator=rng)


def cosine(share: float) -> float:
    """A pace that falls from 1 to 0 along half a wave."""
    return 0.5 * (1 + math.cos(math.pi * share))


def stairs(share: float) -> float:
    """A pace that falls to a tenth after three, five and seven eighths of the way."""
    return float(0.1 ** sum(share >= step / 8 for step in (3, 5, 7)))


def descend(
    problem: InversionProblem,
    start: Tensor,
    objective: Objective,
    *,
    iterations: int,
    lr: float,
    pace: Callable[[float], float] = cosine,
    signed: bool = False,
) -> Iterator[Guess]:
    """Adam on the pixels, which stay in their box; a guess at each moment that is shown."""
    labels, shown = problem.labels, moments(iterations)
    pictures = start.clone().requires_grad_()
    adam = torch.optim.Adam([pictures], lr=lr)
    yield guess(problem, 0, iterations, start, labels, math.inf)
    for iteration in range(1, iterations + 1):
        loss = objective(pictures)
        (slope,) = torch.autograd.grad(loss, pictures)
        pictures.grad = slope.sign() if signed else slope
        adam.param_groups[0]["lr"] = lr * pace((iteration - 1) / iterations)
        adam.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
        if iteration in shown:
            yield guess(problem, iteration, iterations, pictures, labels, float(loss.detach()))


def newton(
    problem: InversionProblem,
    start: Tensor,
    belief: Tensor | None = None,
    *,
    iterations: int,
    lr: float,
    gain: float,
    search: bool,
    tolerance: float,
) -> Iterator[Guess]:
    """L-BFGS on the squared distance without a box; at each moment that is shown, the lowest point so far.

    start (m, ...) as the model reads it; belief (m, classes) holds logits of the labels that are looked for as well.
    It ends early when nothing is gained any more, or when no more is open than the tolerance or the noise.
    """
    slope = LowestPoint(problem, start, belief, gain, tolerance)
    optimizer = torch.optim.LBFGS(
        slope.leaves,
        lr=lr,
        max_iter=INNER,
        tolerance_grad=0,  # its own are absolute: they would end a walk where the upload is small
        tolerance_change=0,
        line_search_fn="strong_wolfe" if search else None,
    )
    shown = moments(iterations, max(40, iterations * INNER // HEARD))
    yield slope.guess(0, iterations)
    mark, waited = math.inf, 0
    for iteration in range(1, iterations + 1):
        try:
            optimizer.step(slope)
        except FloatingPointError:
            yield replace(slope.guess(iteration, iteration), loss=math.inf)
            return
        mark, waited = (slope.lowest, 0) if slope.lowest < (1 - PROGRESS) * mark else (mark, waited + 1)
        if waited == PATIENCE and search:  # where slopes jump, as with ReLU, whole steps may still gain something
            search, waited = False, 0
            optimizer.param_groups[0]["line_search_fn"] = None
        if over := slope.lowest <= slope.enough or waited == PATIENCE:
            iterations = iteration
        if over or iteration in shown:
            yield slope.guess(iteration, iterations)
        if over:
            return


class LowestPoint:
    """What L-BFGS asks for, again and again; remembers the lowest point it was asked about."""

    def __init__(
        self, problem: InversionProblem, start: Tensor, belief: Tensor | None, gain: float, tolerance: float
    ) -> None:
        begin = [start] if belief is None else [start, belief]
        self.problem, self.gain = problem, gain
        self.leaves = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in begin]
        self.best = [leaf.clone() for leaf in self.leaves]
        for leaf in self.leaves:
            leaf.requires_grad_()
        self.lowest = math.inf
        noise = 1 - math.sqrt(1 - problem.floor) if problem.free else problem.floor
        self.enough = max(tolerance, noise)  # a walk beyond the noise would explain the noise

    def __call__(self) -> Tensor:
        loss = apart(self.problem, *self.read(self.leaves))
        slopes = torch.autograd.grad(self.gain * loss, self.leaves)
        for leaf, slope in zip(self.leaves, slopes, strict=True):
            leaf.grad = slope.contiguous()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError
        if value < self.lowest and self.lowest > self.enough:
            self.lowest, self.best = value, [leaf.detach().clone() for leaf in self.leaves]
        return self.gain * loss.detach()

    def read(self, leaves: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Pixels, and classes or shares of belief in them."""
        x, *belief = leaves
        pictures = x * self.problem.scale + self.problem.mean
        return pictures, belief[0].softmax(1) if belief else self.problem.labels

    def guess(self, iteration: int, iterations: int) -> Guess:
        pictures, labels = self.read(self.best)
        classes = labels.argmax(1) if labels.dim() == 2 else labels
        return guess(self.problem, iteration, iterations, pictures, classes, self.lowest)


def apart(problem: InversionProblem, pictures: Tensor, labels: Tensor) -> Tensor:
    """The squared distance of their upload from what was received; the angle, where only the direction counts."""
    return problem.angle(pictures, labels) if problem.free else problem.distance(problem.upload(pictures, labels))


def guess(
    problem: InversionProblem, iteration: int, iterations: int, pictures: Tensor, labels: Tensor, loss: float
) -> Guess:
    """What is believed now, as pixels, with the share it leaves open."""
    seen = pictures.detach().clamp(0, 1).clone()
    return Guess(iteration, iterations, seen, labels, loss, problem.unexplained(seen, labels), problem.residual_scale)
