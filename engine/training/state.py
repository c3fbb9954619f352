"""The state of a run between two rounds, and its form as named arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.errors import Damaged
from engine.events import Payload
from engine.records import Memory, Private, Weights


@dataclass(frozen=True)
class State:
    """Everything the next round depends on. A run resumes from it without the rounds before."""

    round: int
    server: Weights
    memory: Memory = field(default_factory=dict)
    privates: Mapping[int, Private] = field(default_factory=dict)

    def payload(self) -> dict[str, np.ndarray]:
        arrays = {f"server/{name}": array(tensor) for name, tensor in self.server.items()}
        for slot, kept in self.memory.items():
            arrays |= {f"memory/{slot}/{name}": array(tensor) for name, tensor in kept.items()}
        for client, private in self.privates.items():
            arrays |= {f"private/{client}/{name}": array(tensor) for name, tensor in private.items()}
        return arrays


def read_state(round: int, payload: Payload | None, like: Weights) -> State:
    """The state in `payload`, checked against the model `like` it must fit."""
    server: dict[str, Tensor] = {}
    memory: dict[str, dict[str, Tensor]] = {}
    privates: dict[int, dict[str, Tensor]] = {}
    device = next(iter(like.values())).device
    for key, values in (payload or {}).items():
        kind, _, name = key.partition("/")
        tensor = torch.from_numpy(np.array(values)).to(device)
        if kind == "server":
            server[name] = tensor
        elif kind == "memory":
            slot, _, name = name.partition("/")
            memory.setdefault(slot, {})[name] = tensor
        else:
            client, _, name = name.partition("/")
            privates.setdefault(int(client), {})[name] = tensor
    if _shapes(server) != _shapes(like):
        raise Damaged(
            f"state of round {round}: it does not fit the model of this run", "Delete the run and start it again"
        )
    return State(round, {name: server[name] for name in like}, memory, privates)


def _shapes(weights: Weights) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in weights.items()}


def array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
