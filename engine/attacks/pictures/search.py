"""The two optimisers that most attacks share: Adam on pixels in [0, 1], and L-BFGS on the squared distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.attacks.pictures.problem import InversionProblem
from engine.records import Guess

PATIENCE = 10  # L-BFGS has stalled after this many iterations without progress
PROGRESS = 0.01  # the share of the loss that an iteration must gain to count as progress
INNER_STEPS = 20  # steps of L-BFGS in one iteration, as in the papers
MAX_STEPS_WITHOUT_GUESS = 50  # an attack can be stopped only between two guesses

Objective = Callable[[Tensor], Tensor]  # of the pictures


def shown_iterations(iterations: int, many: int = 40) -> frozenset[int]:
    """The iterations after which a guess is shown: often at first, then at equal distances, and the last one."""
    early = {round(iterations ** (place / 12)) for place in range(8)}
    later = many - len(early)
    evenly = {math.ceil(iterations * place / later) for place in range(1, later + 1)}
    return frozenset(early | evenly)


def grey_noise(problem: InversionProblem, rng: torch.Generator, spread: float = 0.1) -> Tensor:
    """The start of a descent: middle grey with a little noise, (m, channels, height, width)."""
    noise = torch.randn(problem.count, *problem.shape, generator=rng, device="cpu").to(problem.device)
    return 0.5 + spread * noise


def cosine_decay(share: float) -> float:
    """A factor that falls from 1 to 0 along half a cosine wave."""
    return 0.5 * (1 + math.cos(math.pi * share))


def step_decay(share: float) -> float:
    """A factor that falls to a tenth after three, five and seven eighths of the iterations."""
    return float(0.1 ** sum(share >= step / 8 for step in (3, 5, 7)))


def descend(
    problem: InversionProblem,
    start: Tensor,
    objective: Objective,
    *,
    iterations: int,
    lr: float,
    decay: Callable[[float], float] = cosine_decay,
    signed: bool = False,
) -> Iterator[Guess]:
    """Adam on pixels clamped to [0, 1]; yields a guess at each of `shown_iterations`."""
    labels = problem.labels
    shown = shown_iterations(iterations)
    pictures = start.clone().requires_grad_()
    adam = torch.optim.Adam([pictures], lr=lr)
    yield make_guess(problem, 0, iterations, start, labels, math.inf)
    for iteration in range(1, iterations + 1):
        loss = objective(pictures)
        (gradient,) = torch.autograd.grad(loss, pictures)
        pictures.grad = gradient.sign() if signed else gradient
        adam.param_groups[0]["lr"] = lr * decay((iteration - 1) / iterations)
        adam.step()
        with torch.no_grad():
            pictures.clamp_(0, 1)
        if iteration in shown:
            yield make_guess(problem, iteration, iterations, pictures, labels, float(loss.detach()))


def lbfgs(
    problem: InversionProblem,
    start: Tensor,
    label_logits: Tensor | None = None,
    *,
    iterations: int,
    lr: float,
    gain: float,
    search: bool,
    tolerance: float,
) -> Iterator[Guess]:
    """L-BFGS on the squared distance, without clamping; each guess is the lowest point so far.

    `start` (m, ...) is normalised. `label_logits` (m, classes) are optimised too; without them the labels are fixed.
    The search ends early when it stalls, or when the unexplained share reaches the tolerance or the noise floor.
    """
    objective = LbfgsObjective(problem, start, label_logits, gain, tolerance)
    optimizer = torch.optim.LBFGS(
        objective.leaves,
        lr=lr,
        max_iter=INNER_STEPS,
        tolerance_grad=0,  # torch's tolerances are absolute, so a small upload would end the search too early
        tolerance_change=0,
        line_search_fn="strong_wolfe" if search else None,
    )
    shown = shown_iterations(iterations, max(40, iterations * INNER_STEPS // MAX_STEPS_WITHOUT_GUESS))
    yield objective.guess(0, iterations)
    reference = math.inf  # the loss at the last progress
    waited = 0
    for iteration in range(1, iterations + 1):
        try:
            optimizer.step(objective)
        except FloatingPointError:
            yield replace(objective.guess(iteration, iteration), loss=math.inf)
            return
        if objective.lowest < (1 - PROGRESS) * reference:
            reference = objective.lowest
            waited = 0
        else:
            waited += 1
        if waited == PATIENCE and search:  # gradients can jump, as with ReLU: full steps may still make progress
            search = False
            waited = 0
            optimizer.param_groups[0]["line_search_fn"] = None
        if objective.lowest <= objective.enough or waited == PATIENCE:
            yield objective.guess(iteration, iteration)
            return
        if iteration in shown:
            yield objective.guess(iteration, iterations)


class LbfgsObjective:
    """The closure that L-BFGS evaluates; it keeps the lowest point that was evaluated."""

    def __init__(
        self, problem: InversionProblem, start: Tensor, label_logits: Tensor | None, gain: float, tolerance: float
    ) -> None:
        variables = [start] if label_logits is None else [start, label_logits]
        self.problem = problem
        self.gain = gain
        self.leaves = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in variables]
        self.best = [leaf.clone() for leaf in self.leaves]
        for leaf in self.leaves:
            leaf.requires_grad_()
        self.lowest = math.inf
        noise = 1 - math.sqrt(1 - problem.floor) if problem.direction_only else problem.floor
        self.enough = max(tolerance, noise)  # below the noise floor the search would fit the noise

    def __call__(self) -> Tensor:
        loss = mismatch(self.problem, *self.read(self.leaves))
        gradients = torch.autograd.grad(self.gain * loss, self.leaves)
        for leaf, gradient in zip(self.leaves, gradients, strict=True):
            leaf.grad = gradient.contiguous()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError
        if value < self.lowest and self.lowest > self.enough:
            self.lowest = value
            self.best = [leaf.detach().clone() for leaf in self.leaves]
        return self.gain * loss.detach()

    def read(self, leaves: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Pixels, and the labels: fixed classes, or probabilities if they are optimised too."""
        pictures = leaves[0] * self.problem.scale + self.problem.mean
        labels = leaves[1].softmax(1) if len(leaves) > 1 else self.problem.labels
        return pictures, labels

    def guess(self, iteration: int, iterations: int) -> Guess:
        """The guess at the lowest point."""
        pictures, labels = self.read(self.best)
        classes = labels.argmax(1) if labels.dim() == 2 else labels
        return make_guess(self.problem, iteration, iterations, pictures, classes, self.lowest)


def mismatch(problem: InversionProblem, pictures: Tensor, labels: Tensor) -> Tensor:
    """The squared distance between the upload of these pictures and the target; the angle if the length is unknown."""
    if problem.direction_only:
        return problem.picture_angle(pictures, labels)
    return problem.distance(problem.upload(pictures, labels))


def make_guess(
    problem: InversionProblem, iteration: int, iterations: int, pictures: Tensor, labels: Tensor, loss: float
) -> Guess:
    """A guess with its pixels clipped to [0, 1] and the share of the upload that it does not explain."""
    pixels = pictures.detach().clamp(0, 1).clone()
    unexplained = problem.unexplained(pixels, labels)
    return Guess(iteration, iterations, pixels, labels, loss, unexplained, problem.residual_scale)
