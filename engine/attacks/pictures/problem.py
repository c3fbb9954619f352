"""An upload as a problem: which pictures, trained on as the protocol says, would have made it?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from engine.records import Exposure, Protocol, ResidualScale
from engine.seeds import Seeds

UNROLLED = 10  # local steps that are played through; of longer training only the direction is compared
PROBES = 64  # grey noise pictures that tell how the sent model answers before it has seen anything
MOST = 8  # pictures that are looked for at once; of more, only so many are
SURE = 3.0  # standard deviations: so far may chance move what noise leaves open


@dataclass(frozen=True)
class InversionProblem:
    """What one adversary received, turned so that a client's own upload could stand in its place."""

    module: nn.Module  # this thread's own, in eval mode, holding the weights that were sent
    goal: Mapping[str, Tensor]
    protocol: Protocol
    shape: tuple[int, ...]
    classes: int
    many: int  # pictures
    free: bool  # only the direction counts: several uploads in one, or more steps than can be played through
    std: float  # of the noise on a coordinate of the goal
    known: Mapping[str, Tensor] = field(default_factory=dict)  # where a mask let something through

    @classmethod
    def of(cls, exposure: Exposure, module: nn.Module) -> InversionProblem:
        protocol = exposure.protocol
        module.eval()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name in exposure.sent:
                    parameter.copy_(exposure.sent[name])
        names = [name for name, _ in module.named_parameters() if name in exposure.received]
        goal, std = received(exposure, names)
        alone = exposure.view in ("server", "aggregate") and protocol.uploads == 1
        simple = protocol.steps == 1 or (protocol.drawing == "whole" and protocol.steps <= UNROLLED)
        many = min(protocol.pictures or protocol.batch, MOST)
        known = {} if protocol.mask == "none" else {name: (tensor != 0).to(tensor) for name, tensor in goal.items()}
        return cls(module, goal, protocol, exposure.shape, exposure.classes, many, not (alone and simple), std, known)

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        return {name: parameter for name, parameter in self.module.named_parameters() if name in self.goal}

    @cached_property
    def size(self) -> Tensor:
        """The squared norm of what was received."""
        return torch.stack([tensor.square().sum() for tensor in self.goal.values()]).sum().clamp_min(1e-30)

    @cached_property
    def floor(self) -> float:
        """The share of the upload that nobody could explain, because it is noise."""
        return min(1.0, self.count * self.std**2 / float(self.size))

    @cached_property
    def count(self) -> int:
        """Numbers in what was received."""
        return sum(tensor.numel() for tensor in self.goal.values())

    @cached_property
    def residual_scale(self) -> ResidualScale:
        grey = torch.full((self.many, *self.shape), 0.5)
        doubt = SURE * self.floor * math.sqrt(2 / self.count)
        direct = first_linear(self.module) is not None
        return ResidualScale(self.unexplained(grey, self.labels), self.floor, doubt, direct)

    @cached_property
    def mean(self) -> Tensor:
        return torch.tensor(self.protocol.mean).view(-1, 1, 1)

    @cached_property
    def scale(self) -> Tensor:
        return torch.tensor(self.protocol.scale).view(-1, 1, 1)

    def normal(self, pictures: Tensor) -> Tensor:
        """Pixels as the model reads them."""
        return (pictures - self.mean) / self.scale

    # --- the path from pictures to an upload ---------------------------------------------------------------

    def upload(self, pictures: Tensor, labels: Tensor, graph: bool = True) -> dict[str, Tensor]:
        """What a client with these pictures (m, ...) would have sent, before noise.

        labels: (m,) classes, or (m, classes) shares of belief.
        """
        x = self.normal(pictures)
        if self.protocol.kind == "gradient":
            sent = self._slopes(self.parameters, x, labels, graph)
        elif self.free or self.protocol.steps == 1:
            local = self.protocol.local
            slopes = self._slopes(self.parameters, x, labels, graph)
            decay = local.weight_decay
            sent = {
                name: -local.lr * (slope + decay * self.parameters[name] if decay else slope)
                for name, slope in slopes.items()
            }
        else:
            sent = self._unrolled(x, labels, graph)
        return self._clipped(sent) if self.protocol.clip == "whole-update" else sent

    def _unrolled(self, x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        """All local steps on the same pictures, one after the other."""
        local, start = self.protocol.local, self.parameters
        now, momenta = dict(start), dict[str, Tensor]()
        for _ in range(self.protocol.steps):
            slopes = self._slopes(now, x, labels, graph)
            for name, slope in slopes.items():
                step = slope + local.weight_decay * now[name] if local.weight_decay else slope
                if self.protocol.proximal:
                    step = step + 2 * self.protocol.proximal * (now[name] - start[name])
                if local.momentum:
                    step = momenta[name] = step + local.momentum * momenta[name] if name in momenta else step
                now[name] = now[name] - local.lr * step
        return {name: now[name] - start[name] for name in start}

    def _slopes(self, weights: Mapping[str, Tensor], x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        """The gradient of one step, its pictures clipped one by one where the protocol does that."""
        bound = self.protocol.bound if self.protocol.clip == "per-example" else None
        if bound is None:
            return self._gradient(weights, x, labels, graph)
        total: dict[str, Tensor] = {}
        for place in range(len(x)):
            own = self._gradient(weights, x[place : place + 1], labels[place : place + 1], graph)
            factor = (bound / norm(own.values()).clamp_min(1e-12)).clamp(max=1) / len(x)
            total = {name: slope * factor + total.get(name, 0) for name, slope in own.items()}
        return total

    def _gradient(self, weights: Mapping[str, Tensor], x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        there = weights is self.parameters
        logits = self.module(x) if there else functional_call(self.module, dict(weights), (x,))
        loss = functional.cross_entropy(logits, labels)
        names = list(weights)
        slopes = torch.autograd.grad(loss, [weights[name] for name in names], create_graph=graph)
        return dict(zip(names, slopes, strict=True))

    def _clipped(self, sent: dict[str, Tensor]) -> dict[str, Tensor]:
        assert self.protocol.bound is not None
        factor = (self.protocol.bound / norm(sent.values()).clamp_min(1e-12)).clamp(max=1)
        return {name: tensor * factor for name, tensor in sent.items()}

    # --- how well an upload explains what was received ------------------------------------------------------

    def distance(self, sent: Mapping[str, Tensor]) -> Tensor:
        """The squared distance, as a share of what was received; 0 explains everything."""
        if self.free:
            return self.turned(sent)
        return torch.stack([(own - self.goal[name]).square().sum() for name, own in self._seen(sent)]).sum() / self.size

    def turned(self, sent: Mapping[str, Tensor]) -> Tensor:
        """One minus the cosine: only the direction counts."""
        pairs = [(own.flatten(), self.goal[name].flatten()) for name, own in self._seen(sent)]
        inner = torch.stack([torch.dot(own, goal) for own, goal in pairs]).sum()
        length = torch.stack([torch.dot(own, own) for own, _ in pairs]).sum().clamp_min(1e-30).sqrt()
        return 1 - inner / (length * self.size.sqrt())

    def angle(self, pictures: Tensor, labels: Tensor) -> Tensor:
        """`turned` of the upload of these pictures; where it can be, without building the gradients of linear layers.

        Such a gradient is δᵀ·a, of slopes δ (m, outputs) and inputs a (m, inputs): its products need no such matrix.
        """
        layers = self._linear
        if not layers:
            return self.turned(self.upload(pictures, labels))
        self._heard.clear()
        loss = functional.cross_entropy(self.module(self.normal(pictures)), labels)
        outputs = [self._heard[name][1] for name in layers]
        slopes = torch.autograd.grad(loss, [*outputs, *self._rest], create_graph=True)
        small, inner, length = list[Tensor](), list[Tensor](), list[Tensor]()
        for name, slope in zip(layers, slopes, strict=False):
            heard = self._heard[name][0]
            inner.append(((slope @ self.goal[f"{name}.weight"]) * heard).sum())
            length.append(((slope @ slope.T) * (heard @ heard.T)).sum())
            if f"{name}.bias" in self.goal:
                small.append(slope.sum(0))
        # in one piece: with several restarts side by side, every call from Python waits for the others
        flat = torch.cat([*small, *(slope.reshape(-1) for slope in slopes[len(layers) :]), self._flat[:0]])
        inner.append(torch.dot(flat, self._flat))
        length.append(torch.dot(flat, flat))
        sign = 1 if self.protocol.kind == "gradient" else -1
        whole = torch.stack(length).sum().clamp_min(1e-30).sqrt() * self.size.sqrt()
        return 1 - sign * torch.stack(inner).sum() / whole

    @cached_property
    def _rest(self) -> list[Tensor]:
        """Parameters of other layers than the linear ones."""
        return [tensor for name, tensor in self.parameters.items() if name.rpartition(".")[0] not in self._linear]

    @cached_property
    def _flat(self) -> Tensor:
        """What was received of the biases of linear layers, and of all other layers, in one piece."""
        biases = [f"{name}.bias" for name in self._linear if f"{name}.bias" in self.goal]
        others = [name for name in self.parameters if name.rpartition(".")[0] not in self._linear]
        return torch.cat([self.goal[name].reshape(-1) for name in (*biases, *others)] or [torch.zeros(0)])

    @cached_property
    def _heard(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Inputs and outputs of every linear layer, in the last pass."""
        heard: dict[str, tuple[Tensor, Tensor]] = {}

        def listen(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            del module
            heard[name] = (inputs[0], output)

        for name in self._linear:
            self.module.get_submodule(name).register_forward_hook(partial(listen, name))
        return heard

    @cached_property
    def _linear(self) -> tuple[str, ...]:
        """Linear layers, where one plain step lies between pictures and upload; none where it is more than that."""
        plain = self.protocol.kind == "gradient" or (self.free or self.protocol.steps == 1)
        if not plain or self.known or self.protocol.clip == "per-example" or self.protocol.local.weight_decay:
            return ()
        layers = [name for name, layer in self.module.named_modules() if isinstance(layer, nn.Linear)]
        return tuple(name for name in layers if f"{name}.weight" in self.goal)

    def unexplained(self, pictures: Tensor, labels: Tensor) -> float:
        """The share of what was received that these pictures leave open: the same for every attack."""
        with torch.enable_grad():
            sent = self.upload(pictures.detach(), labels, graph=False)
        if self.free:
            angle = 1 - float(self.turned(sent).detach())
            return 1 - angle * abs(angle)
        return float(self.distance(sent).detach())

    def _seen(self, sent: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
        return [(name, own * self.known[name] if name in self.known else own) for name, own in sent.items()]

    # --- labels ---------------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> Tensor:
        """The classes behind the upload, read off the last layer: it is pushed towards the classes that are there."""
        weight, bias = last_layer(self.module)
        pushed = self.goal.get(bias) if bias in self.goal else None
        sign = 1.0 if self.protocol.kind == "gradient" else -1.0 / self._reach
        if pushed is not None:
            expected, per_picture = self._guessed_chances, 1.0
            slopes = sign * pushed
        elif weight in self.goal:
            slopes = sign * self.goal[weight].sum(1)
            per_picture = self._feature_sum
            expected = self._guessed_chances * per_picture
        else:
            return torch.zeros(self.many, dtype=torch.int64)
        if self.protocol.clip != "none" or self.free:  # the scale is not known: the most negative ones count
            negative = slopes.clamp(max=0).abs().sum().clamp_min(1e-30)
            slopes = slopes / negative * per_picture * (1 - 1 / self.classes)
        missing = (expected - slopes) * self.many / per_picture  # how many pictures of each class
        found = []
        for _ in range(self.many):
            best = int(missing.argmax())
            found.append(best)
            missing[best] -= 1
        return torch.tensor(sorted(found))

    @property
    def _reach(self) -> float:
        """How far all the local steps go along one gradient."""
        local, steps = self.protocol.local, self.protocol.steps
        if self.protocol.server_step and self.free and self.protocol.uploads > 1:
            return local.lr
        return local.lr * sum((1 - local.momentum**left) / (1 - local.momentum) for left in range(1, steps + 1))

    @cached_property
    def _quiet_answers(self) -> tuple[Tensor, Tensor]:
        """What the sent model says, and the features it says it from, where it is shown grey noise."""
        rng = Seeds(0).rng("grey")
        grey = (0.5 + 0.25 * torch.randn(PROBES, *self.shape, generator=rng)).clamp(0, 1)
        heard: list[Tensor] = []
        head = self.module.get_submodule(last_layer(self.module)[0].rpartition(".")[0])
        hook = head.register_forward_pre_hook(lambda _, inputs: heard.append(inputs[0]))
        with torch.no_grad():
            chances = self.module(self.normal(grey)).softmax(1)
        hook.remove()
        return chances, heard[0]

    @property
    def _guessed_chances(self) -> Tensor:
        return self._quiet_answers[0].mean(0)

    @property
    def _feature_sum(self) -> float:
        return max(1e-12, float(self._quiet_answers[1].sum(1).mean()))


def received(exposure: Exposure, names: Sequence[str]) -> tuple[dict[str, Tensor], float]:
    """What came in, in the sign of one client's upload, and the noise on each coordinate of it."""
    protocol = exposure.protocol
    if exposure.view in ("server", "aggregate"):
        return {name: exposure.received[name] for name in names}, protocol.std
    if exposure.view == "client":  # a participant compares what it was sent now with what it was sent before
        moved = {name: exposure.received[name] - exposure.sent[name] for name in names if name in exposure.sent}
    else:
        moved = {name: exposure.received[name] for name in names}
    sign = -1.0 if protocol.kind == "gradient" else 1.0
    return {name: sign * tensor for name, tensor in moved.items()}, protocol.std


def norm(tensors: Iterable[Tensor]) -> Tensor:
    """The length of all of them together."""
    return torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt()


def last_layer(module: nn.Module) -> tuple[str, str]:
    """The names of the weight and the bias of the last linear layer."""
    name = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)][-1]
    return f"{name}.weight", f"{name}.bias"


def in_order(pictures: Tensor, problem: InversionProblem) -> Tensor:
    """Which class belongs to which picture: labels change places while that explains more."""
    labels = problem.labels.clone()
    best, better = problem.unexplained(pictures, labels), True
    while better:
        better = False
        for one, other in combinations(range(len(labels)), 2):
            trial = labels.clone()
            trial[[one, other]] = labels[[other, one]]
            if not torch.equal(trial, labels) and (found := problem.unexplained(pictures, trial)) < best:
                best, labels, better = found, trial, True
    return labels


def first_linear(module: nn.Module) -> tuple[str, str] | None:
    """The names of the weight and the bias of a first layer that is linear; None where it is something else."""
    for name, layer in module.named_modules():
        if next(layer.parameters(recurse=False), None) is not None:
            return (f"{name}.weight", f"{name}.bias") if isinstance(layer, nn.Linear) else None
    return None


def roughness(pictures: Tensor) -> Tensor:
    """Total variation: how much neighbouring pixels differ, down and across, on average."""
    down = (pictures[..., 1:, :] - pictures[..., :-1, :]).abs().mean()
    across = (pictures[..., 1:] - pictures[..., :-1]).abs().mean()
    return down + across


def moments(iterations: int, many: int = 40) -> frozenset[int]:
    """After which iterations a guess is shown: often at first, then evenly, and at the end."""
    early = {round(iterations ** (place / 12)) for place in range(8)}
    evenly = {math.ceil(iterations * place / (many - len(early))) for place in range(1, many - len(early) + 1)}
    return frozenset(early | evenly)
