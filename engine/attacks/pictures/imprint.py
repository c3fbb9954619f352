"""Robbing the Fed: a malicious server sends a model whose first layer sorts pictures by brightness (Fowl et al. 2022).

Paper → here:  number of bins k → bins,  h(x) = mean brightness → every row,  c_i → biases,  gain → GAIN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.attacks.pictures.labels import labels_in_order
from engine.attacks.pictures.problem import InversionProblem
from engine.attacks.pictures.search import make_guess
from engine.compute.context import AttackContext
from engine.records import Exposure, Guess, Packet, World

# Both are small: the change of a local step must exceed float32 rounding, and yet must not move a picture to another
# bin.
ROW_SUM = 0.03
GAIN = 1e-3
EMPTY = 1e-4  # a bin that changed less than this share of the strongest one holds no picture


class Imprinted(nn.Module):
    """A model with bins of brightness in front, followed by the original model."""

    def __init__(self, inner: nn.Module, inputs: int, bins: int) -> None:
        super().__init__()
        with torch.device("meta"):  # their weights are in the packet
            rows = nn.Linear(inputs, bins)
            back = nn.Linear(bins, inputs, bias=False)
        self.rows = rows.to_empty(device="cpu")
        self.back = back.to_empty(device="cpu")
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        passed = self.back(torch.relu(self.rows(x.flatten(1))))
        logits: Tensor = self.inner(x + passed.reshape(x.shape))
        return logits


@ATTACKS.add("imprint", title="Robbing the Fed", source="arXiv:2110.13057")
class Imprint(PictureAttack):
    """A malicious server changes the model that it sends, and reads whole batches of pictures exactly."""

    malicious: ClassVar[bool] = True
    names_classes: ClassVar[bool] = False
    chance: ClassVar[bool] = False
    leaves: ClassVar[float] = 0.05

    bins: int = Field(
        128,
        ge=2,
        le=1024,
        title="bins",
        description="How finely brightness is sorted: a picture alone in a bin is exact.",
    )
    spread: float = Field(
        0.5, gt=0, le=10, title="spread", description="Assumed standard deviation of brightness between pictures."
    )

    def tamper(self, module: nn.Module, packet: Packet, world: World) -> tuple[nn.Module, Packet]:
        width = math.prod(world.shape)
        model = Imprinted(module, width, self.bins)
        places = torch.arange(1, self.bins + 1, dtype=torch.float64, device=world.device)
        quantiles = places / (self.bins + 1)
        thresholds = self.spread * math.sqrt(2) * torch.special.erfinv(2 * quantiles - 1)
        tampered = {
            "rows.weight": torch.full((self.bins, width), ROW_SUM / width, device=world.device),
            "rows.bias": -ROW_SUM * thresholds.float(),
            "back.weight": torch.full((width, self.bins), GAIN, device=world.device),
        }
        for name, tensor in packet.model.items():
            tampered[f"inner.{name}"] = tensor
        return model, replace(packet, model=tampered)

    def reconstruct(
        self, exposure: Exposure, module: nn.Module, prior: Prior | None, context: AttackContext
    ) -> Iterator[Guess]:
        del prior, context
        problem = InversionProblem.of(exposure, module)
        weight = problem.target["rows.weight"]
        bias = problem.target["rows.bias"]
        inputs = by_least_squares(weight, bias) if problem.count == 1 else by_bins(weight, bias, problem.count)
        pictures = inputs.view(-1, *problem.shape) * problem.scale + problem.mean
        missing = problem.count - len(pictures)  # pictures that share a bin
        grey = torch.full((missing, *problem.shape), 0.5, device=problem.device)
        pictures = torch.cat([torch.nan_to_num(pictures, 0.5, 1.0, 0.0), grey]).clamp(0, 1)
        labels = labels_in_order(pictures, problem)
        yield make_guess(problem, 1, 1, pictures, labels, problem.unexplained(pictures, labels))


def by_least_squares(weight: Tensor, bias: Tensor) -> Tensor:
    """The input (1, inputs) of a single picture, from all units that changed, by least squares."""
    mean: Tensor = bias @ weight / bias.square().sum().clamp_min(1e-30)
    return mean.unsqueeze(0)


def by_bins(weight: Tensor, bias: Tensor, many: int) -> Tensor:
    """At most `many` inputs (n, inputs), one for each bin that changed.

    A unit changes for all pictures brighter than its threshold, so the difference of two neighbours is a single bin.
    """
    rows = torch.cat([weight[:-1] - weight[1:], weight[-1:]])
    changes = torch.cat([bias[:-1] - bias[1:], bias[-1:]])
    full = changes.abs().topk(min(many, len(changes))).indices
    full = full[changes[full].abs() > EMPTY * changes.abs().max()]
    return rows[full] / changes[full].unsqueeze(1)
