"""The even partition."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.partitions.base import PARTITIONS, Partition, by_owner


@PARTITIONS.add("iid", title="IID", source="McMahan et al. 2017")
class Iid(Partition):
    """Every client draws from the same mix of classes, and all hold equally many pictures."""

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        del rng
        return torch.full((len(frequencies), clients), 1 / clients, dtype=torch.float64)

    def deal(self, labels: Tensor, shares: Tensor, rng: torch.Generator) -> list[Tensor]:
        """Like cards, whatever their class: sizes differ by at most one."""
        clients = shares.shape[1]
        seats = torch.arange(len(labels)) % clients
        order = torch.randperm(clients, generator=rng)  # who gets one more
        return by_owner(order[seats][torch.randperm(len(labels), generator=rng)], clients)
