"""The partition of the FedAvg paper: each client gets a few shards of the pictures, sorted by label."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from engine.partitions.base import PARTITIONS, Partition


@PARTITIONS.add("shards", title="Label shards", source="McMahan et al. 2017")
class Shards(Partition):
    """The pictures are sorted by label and cut into equal shards, and every client gets a few shards."""

    limits_classes: ClassVar[bool] = True
    remedy: ClassVar[str] = "Take fewer clients, fewer shards for each, or more pictures"

    per_client: int = Field(
        2, ge=1, le=100, title="shards per client", description="More shards mean more classes for each client."
    )

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        shards = clients * self.per_client
        ends = frequencies.double().cumsum(0)
        cuts = torch.arange(shards + 1, dtype=torch.float64) * float(ends[-1]) / shards
        low = torch.maximum((ends - frequencies)[:, None], cuts[None, :-1])
        high = torch.minimum(ends[:, None], cuts[None, 1:])
        overlap = (high - low).clamp_min(0)[:, torch.randperm(shards, generator=rng)]  # (classes, shards)
        held = overlap.reshape(len(ends), clients, self.per_client).sum(2)
        held[frequencies == 0] = 1.0  # all clients share a class without training pictures
        return held / held.sum(1, keepdim=True)
