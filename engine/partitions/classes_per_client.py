"""The partition in which every client knows only a few classes."""

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
    """Every client holds the same number of classes, and shares each evenly with the others that hold it."""

    remedy: ClassVar[str] = "Take fewer clients, more classes for each, or more pictures"

    classes: int = Field(
        2, ge=1, le=1000, title="classes per client", description="How many different labels a client has seen."
    )

    def shares(self, frequencies: Tensor, clients: int, rng: torch.Generator) -> Tensor:
        known = len(frequencies)
        who = f"{self.name}: classes"
        if self.classes > known:
            raise refusal(who, f"must be at most the {known} classes of this data set", self.classes)
        if self.classes * clients < known:
            least = -(-known // clients)
            raise refusal(
                who, f"must be at least {least}, so that {clients} clients hold all {known} classes", self.classes
            )
        holds = torch.zeros(known, clients, dtype=torch.float64)
        chance = torch.rand(clients, known, generator=rng, dtype=torch.float64)
        holders = torch.zeros(known, dtype=torch.float64)
        for client in range(clients):
            rarest = (holders + chance[client]).topk(self.classes, largest=False).indices  # ties by chance
            holds[rarest, client] = 1.0
            holders[rarest] += 1.0
        return holds / holds.sum(1, keepdim=True)
