"""The state of a run between two rounds, and how it becomes named arrays and comes back."""

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
    """Everything the next round depends on: rounds before it never need to be played again."""

    round: int
    server: Weights
    memory: Memory = field(default_factory=dict)
    privates: Mapping[int, Private] = field(default_factory=dict)

    def payload(self) -> dict[str, np.ndarray]:
        arrays = {f"server/{name}": array(tensor) for name, tensor in self.server.items()}
        arrays |= {f"memory/{name}": array(tensor) for name, tensor in self.memory.items()}
        for client, private in self.privates.items():
            arrays |= {f"private/{client}/{name}": array(tensor) for name, tensor in private.items()}
        return arrays


def restored(round: int, payload: Payload | None, like: Weights) -> State:
    """The state that `payload` wrote, checked against the model it must fit."""
    server: dict[str, Tensor] = {}
    memory: dict[str, Tensor] = {}
    privates: dict[int, dict[str, Tensor]] = {}
    for key, values in (payload or {}).items():
        kind, _, name = key.partition("/")
        tensor = torch.from_numpy(np.array(values)).to(next(iter(like.values())).device)
        if kind == "server":
            server[name] = tensor
        elif kind == "memory":
            memory[name] = tensor
        else:
            client, _, name = name.partition("/")
            privates.setdefault(int(client), {})[name] = tensor
    if {name: tensor.shape for name, tensor in server.items()} != {name: tensor.shape for name, tensor in like.items()}:
        raise Damaged(f"state of round {round}: it does not fit the model of this run", "Delete the run and ask again")
    return State(round, {name: server[name] for name in like}, memory, privates)


def array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
