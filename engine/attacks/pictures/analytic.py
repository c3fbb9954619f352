"""Reading the picture off the first layer, where that is linear: its gradient holds the input itself.

dW = δ · xᵀ and db = δ, so x = dW[i] / db[i] for every unit i; without a bias x is known up to a factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.attacks.pictures.problem import InversionProblem, first_linear, in_order
from engine.attacks.pictures.search import guess
from engine.records import Exposure, Guess, World
from engine.seeds import Seeds

SCALES = 61  # factors that are tried where only the direction is known


@ATTACKS.add(
    "analytic", title="Read off the first layer", source="arXiv:1706.10239 (section 4); arXiv:2003.14053 (appendix)"
)
class Analytic(Attack):
    """Computes the picture from the gradient of a linear first layer, exactly and at once. No search, no luck."""

    chance: ClassVar[bool] = False
    leaves: ClassVar[float] = 0.05  # noise is spread over all pixels alike

    def misfit(self, world: World, module: nn.Module) -> str:
        del world
        return "" if first_linear(module) else "needs a model whose first layer is linear, such as mlp"

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior, seeds
        problem = InversionProblem.of(exposure, module)
        names = first_linear(module)
        assert names is not None
        weight, bias = (problem.goal.get(name) for name in names)
        if weight is None:  # a method that keeps its first layer at home
            inputs = torch.zeros(problem.many, math.prod(problem.shape))
        elif bias is not None:
            inputs = by_bias(weight, bias, problem)
        else:
            inputs = by_direction(weight, problem)
        pictures = inputs.view(problem.many, *problem.shape) * problem.scale + problem.mean
        found = torch.nan_to_num(pictures, 0.5, 1.0, 0.0)
        labels = in_order(found.clamp(0, 1), problem)
        yield guess(problem, 1, 1, found, labels, problem.unexplained(found.clamp(0, 1), labels))


def by_bias(weight: Tensor, bias: Tensor, problem: InversionProblem) -> Tensor:
    """Inputs (many, inputs) from the rows of a first layer: of one picture all rows tell the same."""
    if problem.many == 1:  # least squares over all units: a strong slope counts most, which is best under noise too
        together: Tensor = bias @ weight / bias.square().sum().clamp_min(1e-30)
        return together.unsqueeze(0)
    strong = bias.abs() > 1e-4 * bias.abs().max().clamp_min(1e-30)
    rows = weight[strong] / bias[strong].unsqueeze(1)  # each a mixture of the pictures that moved its unit
    pixels = rows.view(-1, *problem.shape) * problem.scale + problem.mean
    outside = (pixels - pixels.clamp(0, 1)).abs().flatten(1).mean(1)  # a unit that one picture moved stays inside
    order = outside.argsort()
    pure = order[: max(2 * problem.many, int((outside < 1e-4).sum()))]
    rows = rows[pure]
    chosen = [0]
    while len(chosen) < min(problem.many, len(rows)):  # the rows that differ most from those we have
        chosen.append(int(torch.cdist(rows, rows[chosen]).amin(1).argmax()))
    picked = rows[chosen]
    return torch.cat([picked, picked[:1].expand(problem.many - len(picked), -1)])


def by_direction(weight: Tensor, problem: InversionProblem) -> Tensor:
    """Without a bias every row is a multiple of the input; which one, the rest of the upload tells."""
    _, strengths, directions = torch.linalg.svd(weight, full_matrices=False)
    rows: Tensor = directions[: problem.many]
    if len(rows) < problem.many:
        rows = torch.cat([rows, rows.new_zeros(problem.many - len(rows), rows.shape[1])])
    if problem.many > 1:
        return rows.mul(math.sqrt(rows.shape[1]))
    best, found = math.inf, rows.clone()
    longest = _longest(rows[0].view(problem.shape), problem)
    for sign in (1, -1):
        for step in range(1, SCALES):
            trial = rows * (sign * longest * step / (SCALES - 1))
            pictures = trial.view(1, *problem.shape) * problem.scale + problem.mean
            loss = problem.unexplained(pictures, problem.labels)
            if loss < best:
                best, found = loss, trial
    return _finer(found, problem) if float(strengths[0]) > 0 else found


def _longest(direction: Tensor, problem: InversionProblem) -> float:
    """The greatest length any picture of pixels in [0, 1] could have along this direction."""
    corner = torch.maximum(problem.mean.abs(), (1 - problem.mean).abs()) / problem.scale
    return float((corner * direction.abs()).sum())


def _finer(inputs: Tensor, problem: InversionProblem) -> Tensor:
    """The best length near the one that was found: golden sections."""
    low, high = 1 - 1.5 / (SCALES - 1) * 6, 1 + 1.5 / (SCALES - 1) * 6

    def loss(factor: float) -> float:
        pictures = (inputs * factor).view(1, *problem.shape) * problem.scale + problem.mean
        return problem.unexplained(pictures, problem.labels)

    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return inputs * ((low + high) / 2)
