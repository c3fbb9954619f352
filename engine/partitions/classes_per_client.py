"""The partition in which every client holds only a few classes."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from engine.errors import refusal
from engine.partitions.base import PARTITIONS, Partition


@PARTITIONS.add(
    "classes-per-client", title="Few classes each", source="FedLAP-DP (2024): two classes for each of five clients"
)
class ClassesPerClient(Partition):
    """Every client holds the same number of classes. Clients with the same class share it evenly."""

    limits_classes: ClassVar[bool] = True
    remedy: ClassVar[str] = "Take fewer clients, more classes for each, or more pictures"

    classes: int = Field(
        2, ge=1, le=1000, title="classes per client", description="Number of different labels that a client holds."
    )

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        total = len(frequencies)
        field = f"{self.name}: classes"
        if self.classes > total:
            raise refusal(field, f"must be at most the {total} classes of this data set", self.classes)
        if self.classes * clients < total:
            least = -(-total // clients)
            rule = f"must be at least {least}, so that {clients} clients hold all {total} classes"
            raise refusal(field, rule, self.classes)
        holds = torch.zeros(total, clients, dtype=torch.float64)
        tie_breaks = torch.rand(clients, total, generator=rng, dtype=torch.float64)  # below 1: they decide ties only
        holders = torch.zeros(total, dtype=torch.float64)  # clients that hold each class
        for client in range(clients):
            rarest = (holders + tie_breaks[client]).topk(self.classes, largest=False).indices
            holds[rarest, client] = 1.0
            holders[rarest] += 1.0
        return holds / holds.sum(1, keepdim=True)
