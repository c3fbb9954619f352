"""The IID partition: every client holds a random part of the data set."""

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

    def assign(self, labels: Tensor, shares: Tensor, rng: torch.Generator) -> list[Tensor]:
        """The places of each client's pictures, independent of their classes. Sizes differ by at most one."""
        clients = shares.shape[1]
        turns = torch.arange(len(labels)) % clients
        order = torch.randperm(clients, generator=rng)  # the first clients in this order may get one more picture
        shuffled = torch.randperm(len(labels), generator=rng)
        return by_owner(order[turns][shuffled], clients)
