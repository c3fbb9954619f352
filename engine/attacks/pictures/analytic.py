"""The analytic attack: the gradient of a linear first layer contains the picture itself.

dW = δ · xᵀ and db = δ, so x = dW[i] / db[i] for every unit i. Without a bias, x is known up to a factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.labels import labels_in_order
from engine.attacks.pictures.problem import CONFIDENCE, InversionProblem, first_linear
from engine.attacks.pictures.search import make_guess
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess, ResidualScale, World

SCALES = 61  # factors that are tried if only the direction is known
RECURS = 1e-3  # two rows that differ by less of their length show the same picture
REFINEMENTS = 40  # golden-section steps for the best factor


@ATTACKS.add(
    "analytic", title="Read off the first layer", source="arXiv:1706.10239 (section 4); arXiv:2003.14053 (appendix)"
)
class Analytic(PictureAttack):
    """Computes the picture exactly from the gradient of a linear first layer. It needs no search and no restarts."""

    chance: ClassVar[bool] = False
    leaves: ClassVar[float] = 0.05  # noise changes all pixels alike

    def misfit(self, world: World, module: nn.Module) -> str:
        del world
        return "" if first_linear(module) else "needs a model whose first layer is linear, such as mlp"

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior, context
        problem = InversionProblem.of(exposure, module)
        names = first_linear(module)
        assert names is not None
        weight, bias = (problem.target.get(name) for name in names)
        if weight is None:  # a method whose first layer never leaves the client
            inputs = torch.zeros(problem.count, math.prod(problem.shape), device=problem.device)
        elif bias is not None and bool(bias.any()):  # a mask may have removed all of it
            inputs = by_bias(weight, bias, problem)
        else:
            inputs = by_direction(weight, problem)
        pictures = inputs.view(problem.count, *problem.shape) * problem.scale + problem.mean
        pictures = torch.nan_to_num(pictures, 0.5, 1.0, 0.0)
        clipped = pictures.clamp(0, 1)
        labels = labels_in_order(clipped, problem)
        if weight is not None and bias is not None and bool(bias.any()) and not problem.masks:
            yield FirstLayer(problem, weight, bias).guess(clipped, labels)
        else:
            yield make_guess(problem, 1, 1, pictures, labels, problem.unexplained(clipped, labels))


@dataclass(frozen=True)
class FirstLayer:
    """The gradient of a first layer with a bias, by which a guess is judged without simulating an upload.

    Every row of [dW, db] is a sum of the rows [x, 1] of the pictures. This holds for any number of steps, and for units
    that dropout switched off, where a simulated upload would differ.
    """

    problem: InversionProblem
    weight: Tensor  # (units, inputs)
    bias: Tensor  # (units,)

    def guess(self, pictures: Tensor, labels: Tensor) -> Guess:
        """The guess with these pictures, and how consistent the rows are with it."""
        scale = self._residual_scale
        unexplained = self._outside(pictures)
        lonely = self._lonely(pictures) * max(0.0, scale.grey - unexplained)
        return Guess(1, 1, pictures, labels, unexplained + lonely, unexplained + lonely, scale)

    @cached_property
    def _rows(self) -> Tensor:
        return torch.cat([self.weight, self.bias.unsqueeze(1)], dim=1).double()

    def _sources(self, pictures: Tensor) -> Tensor:
        """The rows [x, 1] of pictures with pixels in [0, 1]."""
        inputs = self.problem.normalised(pictures).flatten(1)
        return torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1).double()

    def _outside(self, pictures: Tensor) -> float:
        """The share of the rows that is no sum of the rows of these pictures."""
        sources = self._sources(pictures)
        fitted = self._rows @ torch.linalg.pinv(sources) @ sources
        return float((self._rows - fitted).square().sum() / self._rows.square().sum().clamp_min(1e-30))

    def _lonely(self, pictures: Tensor) -> float:
        """The share of the guesses that fewer than two rows show.

        A row that several pictures made is a mixture of them, and explains itself. No two such rows are equal.
        """
        if self.problem.count == 1:
            return 0.0
        active = self.bias.abs() > 1e-12
        shown = self._rows[active] / self._rows[active][:, -1:]
        sources = self._sources(pictures)
        near = torch.cdist(sources, shown) < RECURS * sources.norm(dim=1, keepdim=True)
        return float((near.sum(dim=1) < 2).double().mean())

    @cached_property
    def _residual_scale(self) -> ResidualScale:
        problem = self.problem
        grey = torch.full((problem.count, *problem.shape), 0.5, device=problem.device)
        free = self._rows.numel() - problem.count * len(self._rows)  # numbers that no sum of the pictures can fit
        variance = problem.noise_std**2 * problem.protocol.share * max(free, 1)
        floor = min(1.0, variance / max(float(self._rows.square().sum()), 1e-30))
        tolerance = CONFIDENCE * floor * math.sqrt(2 / max(free, 1))
        return ResidualScale(self._outside(grey), floor, tolerance, direct=True)


def by_bias(weight: Tensor, bias: Tensor, problem: InversionProblem) -> Tensor:
    """Inputs (many, inputs) from the gradients of a first layer with a bias; one picture makes all rows equal."""
    if problem.count == 1:  # least squares over all units weighs large gradients most, which is also best under noise
        average: Tensor = bias @ weight / bias.square().sum().clamp_min(1e-30)
        return average.unsqueeze(0)
    strong = bias.abs() > 1e-4 * bias.abs().max().clamp_min(1e-30)
    rows = weight[strong] / bias[strong].unsqueeze(1)  # each a mixture of the pictures that activated its unit
    pixels = rows.view(-1, *problem.shape) * problem.scale + problem.mean
    outside = (pixels - pixels.clamp(0, 1)).abs().flatten(1).mean(1)  # 0 if a single picture activated the unit
    order = outside.argsort()
    pure = order[: max(2 * problem.count, int((outside < 1e-4).sum()))]
    rows = rows[pure]
    chosen = [0]
    while len(chosen) < min(problem.count, len(rows)):
        farthest = torch.cdist(rows, rows[chosen]).amin(1).argmax()  # the row that differs most from the chosen ones
        chosen.append(int(farthest))
    inputs = rows[chosen]
    return torch.cat([inputs, inputs[:1].expand(problem.count - len(inputs), -1)])


def by_direction(weight: Tensor, problem: InversionProblem) -> Tensor:
    """Inputs (many, inputs) without a bias: each row is a multiple of the input; the rest of the upload gives which."""
    _, strengths, directions = torch.linalg.svd(weight, full_matrices=False)
    rows: Tensor = directions[: problem.count]
    if len(rows) < problem.count:
        rows = torch.cat([rows, rows.new_zeros(problem.count - len(rows), rows.shape[1])])
    if problem.count > 1:
        return rows.mul(math.sqrt(rows.shape[1]))
    lowest = math.inf
    best = rows.clone()
    longest = _longest(rows[0].view(problem.shape), problem)
    for sign in (1, -1):
        for step in range(1, SCALES):
            trial = rows * (sign * longest * step / (SCALES - 1))
            unexplained = _unexplained(trial, problem)
            if unexplained < lowest:
                lowest = unexplained
                best = trial
    return _refined(best, problem) if float(strengths[0]) > 0 else best


def _unexplained(inputs: Tensor, problem: InversionProblem) -> float:
    """The share of the upload that one input (1, inputs) does not explain."""
    pictures = inputs.view(1, *problem.shape) * problem.scale + problem.mean
    return problem.unexplained(pictures, problem.labels)


def _longest(direction: Tensor, problem: InversionProblem) -> float:
    """The largest length of a picture with pixels in [0, 1] along this direction."""
    corner = torch.maximum(problem.mean.abs(), (1 - problem.mean).abs()) / problem.scale
    return float((corner * direction.abs()).sum())


def _refined(inputs: Tensor, problem: InversionProblem) -> Tensor:
    """The input at the best length near the given one, by golden-section search."""
    low = 1 - 1.5 / (SCALES - 1) * 6
    high = 1 + 1.5 / (SCALES - 1) * 6
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(REFINEMENTS):
        left = high - golden * (high - low)
        right = low + golden * (high - low)
        if _unexplained(inputs * left, problem) < _unexplained(inputs * right, problem):
            high = right
        else:
            low = left
    return inputs * ((low + high) / 2)
