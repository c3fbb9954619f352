"""Robbing the Fed: a malicious server sends a model whose first layer sorts pictures by brightness (Fowl et al. 2022).

Paper → here:  number of bins k → bins,  h(x) = mean brightness → every row,  c_i → biases,  gain → GAIN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from engine.attacks.base import ATTACKS, Attack, Prior
from engine.attacks.pictures.problem import InversionProblem, in_order
from engine.attacks.pictures.search import guess
from engine.records import Exposure, Guess, Packet, World
from engine.seeds import Seeds

# Small rows and a small gain: what a local step moves must stand out against float32 rounding, and yet move no bin.
ROWS, GAIN = 0.03, 1e-3
EMPTY = 1e-4  # of the strongest bin: what moves less holds no picture


class Imprinted(nn.Module):
    """A model that first writes its input down: bins of brightness, and then everything as before."""

    def __init__(self, inner: nn.Module, inputs: int, bins: int) -> None:
        super().__init__()
        with torch.device("meta"):  # what they hold comes with the packet
            rows, back = nn.Linear(inputs, bins), nn.Linear(bins, inputs, bias=False)
        self.rows, self.back = rows.to_empty(device="cpu"), back.to_empty(device="cpu")
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        passed = self.back(torch.relu(self.rows(x.flatten(1))))
        answer: Tensor = self.inner(x + passed.reshape(x.shape))
        return answer


@ATTACKS.add("imprint", title="Robbing the Fed", source="arXiv:2110.13057")
class Imprint(Attack):
    """A dishonest server changes the model it sends, and reads pictures out of whole batches exactly."""

    malicious: ClassVar[bool] = True
    chance: ClassVar[bool] = False
    leaves: ClassVar[float] = 0.05

    bins: int = Field(
        128, ge=2, le=1024, title="bins", description="How finely brightness is sorted: one picture a bin is exact."
    )
    spread: float = Field(
        0.5, gt=0, le=10, title="spread", description="How much brightness differs from picture to picture, at a guess."
    )

    def tamper(self, module: nn.Module, packet: Packet, world: World) -> tuple[nn.Module, Packet]:
        width = math.prod(world.shape)
        bent = Imprinted(module, width, self.bins)
        places = torch.arange(1, self.bins + 1, dtype=torch.float64) / (self.bins + 1)
        heights = self.spread * math.sqrt(2) * torch.special.erfinv(2 * places - 1)
        added = {
            "rows.weight": torch.full((self.bins, width), ROWS / width),
            "rows.bias": -ROWS * heights.float(),
            "back.weight": torch.full((width, self.bins), GAIN),
        }
        return bent, {**added, **{f"inner.{name}": tensor for name, tensor in packet.items()}}

    def reconstruct(self, exposure: Exposure, module: nn.Module, prior: Prior | None, seeds: Seeds) -> Iterator[Guess]:
        del prior, seeds
        problem = InversionProblem.of(exposure, module)
        weight, bias = problem.goal["rows.weight"], problem.goal["rows.bias"]
        inputs = together(weight, bias) if problem.many == 1 else by_bins(weight, bias, problem.many)
        pictures = inputs.view(-1, *problem.shape) * problem.scale + problem.mean
        grey = torch.full((problem.many - len(pictures), *problem.shape), 0.5)  # bins that held more than one
        found = torch.cat([torch.nan_to_num(pictures, 0.5, 1.0, 0.0), grey]).clamp(0, 1)
        labels = in_order(found, problem)
        yield guess(problem, 1, 1, found, labels, problem.unexplained(found, labels))


def together(weight: Tensor, bias: Tensor) -> Tensor:
    """Of one picture every unit that moved tells the same: all of them, by least squares."""
    mean: Tensor = bias @ weight / bias.square().sum().clamp_min(1e-30)
    return mean.unsqueeze(0)


def by_bins(weight: Tensor, bias: Tensor, many: int) -> Tensor:
    """A unit moves for all pictures brighter than its bin: the difference of neighbours is one bin alone."""
    rows = torch.cat([weight[:-1] - weight[1:], weight[-1:]])
    moved = torch.cat([bias[:-1] - bias[1:], bias[-1:]])
    full = moved.abs().topk(min(many, len(moved))).indices
    full = full[moved[full].abs() > EMPTY * moved.abs().max()]
    return rows[full] / moved[full].unsqueeze(1)
