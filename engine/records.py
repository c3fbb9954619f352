"""Frozen records that cross a wall: what a method knows, what leaves a client, what an attacker gets, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

Weights = Mapping[str, Tensor]  # named parameters
Memory = Mapping[str, Tensor]  # what a method's server remembers between rounds
Packet = Mapping[str, Tensor]  # what the server sends to one client
Private = Mapping[str, Tensor]  # what a client keeps and never sends

View = Literal["server", "aggregate", "outsider", "client"]
VIEWS: tuple[View, ...] = ("server", "aggregate", "outsider", "client")


@dataclass(frozen=True)
class Local:
    """How a client trains: plain SGD over its own pictures."""

    epochs: int
    batch: int
    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0


@dataclass(frozen=True)
class World:
    """Everything public about a run: what the server, every client and every attacker may know."""

    weights: Weights
    build: Callable[[torch.Generator], nn.Module]
    stacked: Callable[..., dict[str, Tensor]] | None  # gradients of many clients at once, where the model has them
    head: tuple[str, ...]  # the parameters of the last layer
    shape: tuple[int, ...]
    classes: int
    clients: int
    sampled: int
    sampling: Literal["poisson", "fixed", "all"]
    sizes: tuple[int, ...]  # pictures of each client
    rounds: int
    local: Local
    mean: tuple[float, ...] = (0.0,)  # input normalisation; empty where there are no channels
    std: tuple[float, ...] = (1.0,)
    honest: float = 1.0  # the share of clients that really add their noise

    @property
    def pictures(self) -> bool:
        """Whether what clients hold are pictures: three axes; a sentence has one."""
        return len(self.shape) == 3

    @property
    def rate(self) -> float:
        """The chance of one client to be in one round."""
        return self.sampled / self.clients


@dataclass(frozen=True)
class Client:
    """One client and its data, which never leave it."""

    id: int
    x: Tensor  # (n, ...)
    y: Tensor  # (n,)


@dataclass(frozen=True)
class Seat:
    """Where a client sits in one exchange; in `merge`, the server's own seat (client and slot are -1)."""

    client: int
    slot: int
    round: int
    exchange: int
    exchanges: int
    cohort: int  # |S|


@dataclass(frozen=True)
class Upload:
    """EVERYTHING that leaves a client: tensors, and the scalars it declares public."""

    client: int
    kind: Literal["gradient", "update", "samples"]
    tensors: Mapping[str, Tensor]
    public: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Protocol:
    """The public facts an attacker at this place knows."""

    kind: Literal["gradient", "update", "samples"]
    local: Local
    steps: int  # local optimiser steps behind one upload
    batch: int  # pictures in one step
    drawing: Literal["whole", "shuffled", "poisson"]
    loss: str = "cross-entropy"
    proximal: float = 0.0
    clip: Literal["none", "per-example", "whole-update"] = "none"
    bound: float | None = None  # the clip bound
    noise: Literal["none", "gaussian", "laplace", "binomial"] = "none"
    std: float = 0.0  # per coordinate, as THIS view meets it
    mask: str = "none"
    server_step: float = 1.0
    uploads: int = 1  # how many uploads are in what was received
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)  # input normalisation: (pixel - mean) / scale
    pictures: int | None = None  # granted to the attacker, and said


@dataclass(frozen=True)
class Exposure:
    """What one adversary got, and nothing else: no seed, no batch indices, no generator, no truth."""

    view: View
    sent: Weights  # the model the server sent, or the global model an outsider knew before
    received: Mapping[str, Tensor]
    protocol: Protocol
    shape: tuple[int, ...]
    classes: int
    tampered: bool = False


@dataclass(frozen=True)
class ExtraWork:
    """What the merges of a run do beside adding up: for the expected time."""

    decomposed: float = 0.0  # rows² · columns of complex matrices
    judged: int = 0  # models


@dataclass(frozen=True)
class ResidualScale:
    """What the share of an upload that a guess leaves open is to be compared with."""

    grey: float  # the share that plain grey pictures leave open
    floor: float  # the share that is noise, which nobody could explain
    doubt: float  # by how much the noise may move such a share
    direct: bool  # whether the first layer reads the pixels themselves: then little left open is little wrong

    @property
    def drowned(self) -> bool:
        """Whether noise hides all that tells one picture from another."""
        return self.grey - self.floor <= self.doubt

    @property
    def chance(self) -> float:
        """By how much noise may move what is left open."""
        return self.doubt / max(self.grey - self.floor, 1e-30)

    def left(self, unexplained: float) -> float:
        """How much a guess leaves open of what a grey one would: 0 is as good as the truth."""
        return (unexplained - self.floor) / max(self.grey - self.floor, 1e-30)


@dataclass(frozen=True)
class Guess:
    """What an attack believes after some iterations, and how well that explains what was received."""

    iteration: int
    of: int
    pictures: Tensor  # (m, channels, height, width), pixels in [0, 1]
    labels: Tensor  # (m,)
    loss: float  # the attack's own objective: what it chooses by
    unexplained: float  # share of what was received that these pictures leave open
    residual_scale: ResidualScale


# --- privacy -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of std z over the sensitivity, met with chance `rate` at each of `steps` steps."""

    z: float
    rate: float = 1.0
    steps: int = 1


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of scale b over the L1 sensitivity."""

    b: float
    steps: int = 1


@dataclass(frozen=True)
class Renyi:
    """A law known by its own Renyi curve."""

    orders: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class EpsilonDeltaPair:
    """A law known only by one pair (ε, δ): composed by addition."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class NoNoise:
    """Something leaves without noise: composes to ∞."""

    why: str = "it leaves without noise"


Law = Gaussian | Laplace | Renyi | EpsilonDeltaPair | NoNoise


@dataclass(frozen=True)
class Release:
    """What one view learns of some clients in one round."""

    view: View
    law: Law
    clients: tuple[int, ...] | None = None  # who pays; None: everyone
    observers: tuple[int, ...] | None = None  # in the `client` view: who sees it; None: everyone
    unit: Literal["user", "record"] = "user"
    adjacency: str = "zero-out"
    sampling: str = "all"  # the assumption the law rests on: poisson, fixed, all
    bound: str = ""  # `upper bound` where the true cost may be lower, `approximation` where it may be a little higher


Status = Literal["formal", "formal-other-view", "claimed-refuted", "empirical", "none"]


@dataclass(frozen=True)
class Guarantee:
    """What a method promises, in the words of one fixed list, and why."""

    status: Status
    reason: str
    absent: Mapping[str, str] = field(default_factory=dict)  # view -> why it has no ε ("n/a, because ...")
