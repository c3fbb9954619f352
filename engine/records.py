"""Frozen records that packages exchange: the world of a run, uploads, exposures, guesses, releases and guarantees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Weights = Mapping[str, Tensor]  # named parameters
Memory = Mapping[str, Weights]  # what the server keeps between rounds, by slot
Private = Mapping[str, Tensor]  # what a client keeps and never sends

UploadKind = Literal["gradient", "update", "samples"]
View = Literal["server", "aggregate", "outsider", "client"]
VIEWS: tuple[View, ...] = ("server", "aggregate", "outsider", "client")


@dataclass(frozen=True)
class Local:
    """The settings of local training: SGD on the client's own data."""

    epochs: int
    batch: int
    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0


@dataclass(frozen=True)
class World:
    """Everything public about a run: the server, every client and every attacker may use it."""

    weights: Weights
    build: Callable[[torch.Generator], nn.Module]
    stacked: Callable[..., dict[str, Tensor]] | None  # gradients of many clients at once; None if the model cannot
    head: tuple[str, ...]  # the parameters of the last layer
    shape: tuple[int, ...]
    classes: int
    clients: int
    sampled: int
    sampling: Literal["poisson", "fixed", "all"]
    sizes: tuple[int, ...]  # examples of each client
    rounds: int
    local: Local
    mean: tuple[float, ...] = (0.0,)  # input normalisation; empty where there are no channels
    std: tuple[float, ...] = (1.0,)
    honest: float = 1.0  # the share of clients that add their noise
    delta: float = 1e-5  # the δ of the whole run: a method that proves (ε, δ) for one round splits it over the rounds
    held: tuple[tuple[int, ...], ...] = ()  # the classes of each client, declared public by the partition

    @property
    def pictures(self) -> bool:
        """Whether the data are pictures, which have three axes. A sentence has one."""
        return len(self.shape) == 3

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(iter(self.weights.values())).device

    @cached_property
    def size_array(self) -> NDArray[np.intp]:
        """`sizes` as an array."""
        return np.array(self.sizes, dtype=np.intp)

    @cached_property
    def equal_sizes(self) -> bool:
        """Whether all clients have equally many examples."""
        return min(self.sizes) == max(self.sizes)

    @property
    def rate(self) -> float:
        """The probability that a client is in a round."""
        return self.sampled / self.clients


@dataclass(frozen=True)
class Client:
    """A client and its data, which never leave it."""

    id: int
    x: Tensor  # (n, ...)
    y: Tensor  # (n,)


@dataclass(frozen=True)
class Seat:
    """The position of a client in one exchange. In `merge` it is the server's own: client and slot are -1."""

    client: int
    slot: int
    round: int
    exchange: int
    exchanges: int
    cohort: int  # |S|


@dataclass(frozen=True)
class Packet:
    """What the server sends to one client: a model, and by slot what some methods send with it."""

    model: Weights
    extra: Mapping[str, Weights] = field(default_factory=dict)


@dataclass(frozen=True)
class Samples:
    """Labelled inputs that a client made and uploads."""

    x: Tensor  # (n, ...) inputs of the model
    y: Tensor  # (n,)


@dataclass(frozen=True)
class Upload:
    """EVERYTHING that leaves a client: tensors, and the scalars that it declares public.

    The accounting and the attacks read only this. A value that left by another way would be a leak without an ε.
    """

    client: int  # -1: the sum of several clients, or the change of a model between two rounds
    kind: UploadKind
    model: Weights = field(default_factory=dict)  # the gradient or the update, by parameter
    extra: Mapping[str, Weights] = field(default_factory=dict)  # by slot: what some methods upload with it
    samples: Samples | None = None
    public: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Protocol:
    """The public facts that an attacker in one view has."""

    kind: UploadKind
    local: Local
    steps: int  # local optimiser steps in one upload
    batch: int  # examples in one step
    drawing: Literal["whole", "shuffled", "poisson"]
    loss: str = "cross-entropy"
    proximal: float = 0.0
    clip: Literal["none", "per-example", "whole-update"] = "none"
    bound: float | None = None  # the clip bound
    noise: Literal["none", "gaussian", "laplace", "binomial"] = "none"
    std: float = 0.0  # per coordinate, as THIS view observes it
    mask: Literal["none", "zeros", "clear"] = "none"  # zeros: what is 0 was left out; clear: what is small is exact
    server_step: float = 1.0
    uploads: int = 1  # how many uploads were summed in what was received
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)  # input normalisation: (pixel - mean) / scale
    pictures: int | None = None  # their number, where the attacker is given it
    share: float = 1.0  # of the coordinates that carry noise
    coding: Literal["none", "sign"] = "none"
    drift: bool = False  # whether each local step adds the server's control variate minus the client's

    @property
    def path_length(self) -> float:
        """The factor between one gradient and the update of all local steps along it."""
        momentum = self.local.momentum
        remaining = range(1, self.steps + 1)
        return self.local.lr * sum((1 - momentum**left) / (1 - momentum) for left in remaining)


@dataclass(frozen=True)
class Exposure:
    """Everything that one adversary received, and nothing else.

    It holds no seed, batch indices, generator or original picture. With any of them, an attack could recompute the
    batch or the noise. Its result would then no longer measure what the view leaks.
    """

    view: View
    packet: Packet  # what the server sent; for an outsider, the global model before the round
    upload: Upload  # what the observer received: an upload, a sum, or the change of a model
    protocol: Protocol
    shape: tuple[int, ...]
    classes: int
    tampered: bool = False
    own: Upload | None = None  # in the `client` view: the observer's upload, whose part in `upload` it has subtracted
    known: Mapping[str, Weights] = field(default_factory=dict)  # what the observer could sum up from earlier rounds
    lacks: str = ""  # what the observer would need to compute the upload of a guess exactly; empty: nothing
    at_once: int | None = None  # pictures that an attack reconstructs at most; None: its own limit


@dataclass(frozen=True)
class Sight:
    """What a membership attack sees: the outputs of models on a pool of records that anyone could hold.

    It does not say which records were in the training data, except for runs that the attacker trained itself.
    """

    view: View
    rounds: tuple[int, ...]  # of the models; the server has two of one round: what it sent, and that plus the upload
    logits: Tensor  # (models, pool, classes)
    labels: Tensor  # (pool,)
    own: Tensor | None = None  # (pool,) True for records that the attacker itself holds
    members: Tensor | None = None  # (pool,) of the attacker's own runs only


@dataclass(frozen=True)
class ExtraWork:
    """The work of a run apart from the steps of its protocol and from testing. The forecast of the time reads it."""

    local_steps: float = 0.0  # steps of clients that the protocol does not count, over all clients and rounds
    server_steps: float = 0.0  # training steps of the server
    decomposed: float = 0.0  # rows² · columns of complex matrices
    judged: int = 0  # models
    kept: float = 0.0  # copies of the weights that the server keeps between rounds


@dataclass(frozen=True)
class ResidualScale:
    """The scale for a residual: the share of an upload that a guess does not explain."""

    grey: float  # the share that grey pictures leave unexplained
    floor: float  # the share that is noise, which no guess can explain
    noise_tolerance: float  # the deviation of such a share that noise alone may cause
    direct: bool  # whether the first layer reads the pixels directly: then a small residual means a small error
    pixels: int = 0  # numbers that the pictures hold
    received: int = 0  # numbers that the upload holds and that are not zero; 0: it was not counted

    @property
    def ambiguous(self) -> bool:
        """Whether the upload holds fewer numbers than the pictures: then other pictures explain it as well."""
        return 0 < self.received < self.pixels

    @property
    def hides_pictures(self) -> bool:
        """Whether noise hides every difference between one picture and another."""
        return self.grey - self.floor <= self.noise_tolerance

    @property
    def noise_effect(self) -> float:
        """The deviation of `left` that noise alone may cause."""
        return self.noise_tolerance / max(self.grey - self.floor, 1e-30)

    def left(self, unexplained: float) -> float:
        """The residual of a guess relative to that of a grey picture: 0 is as good as the original."""
        return (unexplained - self.floor) / max(self.grey - self.floor, 1e-30)


@dataclass(frozen=True)
class Guess:
    """The pictures that an attack reconstructs after some iterations, and how well they explain the exposure."""

    iteration: int
    of: int
    pictures: Tensor  # (m, channels, height, width), pixels in [0, 1]
    labels: Tensor  # (m,)
    loss: float  # the attack's own objective, by which it chooses a restart
    unexplained: float  # the share of the exposure that these pictures do not explain
    residual_scale: ResidualScale


# --- privacy -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of std z over the sensitivity; each of `steps` steps samples with probability `rate`."""

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
    """A law that is known only by its Rényi curve."""

    orders: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class EpsilonDeltaPair:
    """A law that is known only by one pair (ε, δ). Pairs are composed by addition."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class NoNoise:
    """A release without noise: its ε is infinite."""

    reason: str = "it leaves without noise"


Mechanism = Gaussian | Laplace | Renyi | EpsilonDeltaPair | NoNoise


@dataclass(frozen=True)
class AllBut:
    """All clients except these. It is much smaller than a list of thousands of clients, and quicker to charge."""

    ids: Sequence[int]

    def __contains__(self, client: object) -> bool:
        return client not in self.ids


Clients = Sequence[int] | AllBut | None  # None: all clients


@dataclass(frozen=True)
class Release:
    """What one view receives about some clients in one round."""

    view: View
    mechanism: Mechanism
    clients: Clients = None  # the clients that are charged
    observers: Clients = None  # in the `client` view: the clients that receive it
    unit: Literal["user", "record"] = "user"
    adjacency: str = "zero-out"
    sampling: str = "all"  # the sampling that the law assumes: poisson, fixed, all
    bound: str = ""  # `upper bound`: the true ε may be lower; `approximation`: it may be much higher


Status = Literal["formal", "formal-other-view", "claimed-refuted", "empirical", "none"]


@dataclass(frozen=True)
class Guarantee:
    """What a method guarantees: a status from a fixed list, and the reason."""

    status: Status
    reason: str
    absent: Mapping[str, str] = field(default_factory=dict)  # view -> why it has no ε ("n/a, because ...")
