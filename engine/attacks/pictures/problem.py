"""An upload as an inverse problem: which pictures, trained on as the protocol says, produce it?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from engine.attacks.pictures.labels import labels_of
from engine.compute import weights
from engine.records import Exposure, Protocol, ResidualScale

MAX_UNROLLED_STEPS = 10  # local steps that are computed one by one; of longer training only the direction is compared
MAX_PICTURES = 8  # pictures that are reconstructed at once, also from a larger batch
CONFIDENCE = 3.0  # standard deviations: how far noise may plausibly move the unexplained share


@dataclass(frozen=True)
class InversionProblem:
    """What one adversary received, with its sign turned to that of one client's upload."""

    module: nn.Module  # this thread's own, in eval mode, with the weights that were sent
    target: Mapping[str, Tensor]
    protocol: Protocol
    shape: tuple[int, ...]
    classes: int
    count: int  # pictures
    direction_only: bool  # the length is unknown: several uploads in one, or more steps than are unrolled
    noise_std: float  # on each coordinate of the target
    masks: Mapping[str, Tensor] = field(default_factory=dict)  # 1 where the protocol's mask let a number through
    drift: Mapping[str, Tensor] = field(default_factory=dict)  # what each local step adds to the gradient, if known

    @classmethod
    def of(cls, exposure: Exposure, module: nn.Module) -> InversionProblem:
        protocol = exposure.protocol
        module.eval()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name in exposure.packet.model:
                    parameter.copy_(exposure.packet.model[name])
        names = [name for name, _ in module.named_parameters() if name in exposure.upload.model]
        target, noise_std = target_of(exposure, names)
        one_upload = protocol.uploads == 1 and (exposure.view in ("server", "aggregate") or single_change(exposure))
        unrollable = protocol.drawing == "whole" and protocol.steps <= MAX_UNROLLED_STEPS
        exact = one_upload and (protocol.steps == 1 or unrollable)
        masks: dict[str, Tensor] = {}
        if protocol.mask == "zeros":
            masks = {name: (tensor != 0).to(tensor) for name, tensor in target.items()}
        drift = drift_of(exposure, names)
        if drift:
            target = weights.add(target, drift, protocol.path_length)
        return cls(
            module=module,
            target=target,
            protocol=protocol,
            shape=exposure.shape,
            classes=exposure.classes,
            count=min(protocol.pictures or protocol.batch, exposure.at_once or MAX_PICTURES),
            direction_only=not exact,
            noise_std=noise_std,
            masks=masks,
            drift=drift,
        )

    @property
    def device(self) -> torch.device:
        """The device of the model, on which the attack computes."""
        return next(self.module.parameters()).device

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        return {name: parameter for name, parameter in self.module.named_parameters() if name in self.target}

    @cached_property
    def squared_norm(self) -> Tensor:
        """The squared norm of the target."""
        return torch.stack([tensor.square().sum() for tensor in self.target.values()]).sum().clamp_min(1e-30)

    @cached_property
    def floor(self) -> float:
        """The share of the upload that is noise, which no pictures explain."""
        noisy = self.protocol.share * self.coordinates
        return min(1.0, noisy * self.noise_std**2 / float(self.squared_norm))

    @cached_property
    def coordinates(self) -> int:
        """How many numbers the target has."""
        return sum(tensor.numel() for tensor in self.target.values())

    @cached_property
    def residual_scale(self) -> ResidualScale:
        grey = torch.full((self.count, *self.shape), 0.5, device=self.device)
        doubt = CONFIDENCE * self.floor * math.sqrt(2 / self.coordinates)
        direct = first_linear(self.module) is not None
        received = sum(int((tensor != 0).sum()) for tensor in self.target.values())
        unexplained = self.unexplained(grey, self.labels)
        return ResidualScale(unexplained, self.floor, doubt, direct, pixels=grey.numel(), received=received)

    @cached_property
    def mean(self) -> Tensor:
        return torch.tensor(self.protocol.mean, device=self.device).view(-1, 1, 1)

    @cached_property
    def scale(self) -> Tensor:
        return torch.tensor(self.protocol.scale, device=self.device).view(-1, 1, 1)

    def normalised(self, pictures: Tensor) -> Tensor:
        """Pixels in [0, 1] as the input of the model."""
        return (pictures - self.mean) / self.scale

    # --- from pictures to an upload ------------------------------------------------------------------------

    def upload(self, pictures: Tensor, labels: Tensor, graph: bool = True) -> dict[str, Tensor]:
        """The upload of a client with these pictures (m, ...), before noise.

        labels: (m,) classes, or (m, classes) probabilities.
        """
        x = self.normalised(pictures)
        if self.protocol.kind == "gradient":
            sent = self._step_gradients(self.parameters, x, labels, graph)
        elif self.direction_only or self.protocol.steps == 1:
            sent = self._single_step(x, labels, graph)
        else:
            sent = self._unrolled_steps(x, labels, graph)
        return self._clipped(sent) if self.protocol.clip == "whole-update" else sent

    def _single_step(self, x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        """The update of one local step."""
        local = self.protocol.local
        update = {}
        for name, gradient in self._step_gradients(self.parameters, x, labels, graph).items():
            if local.weight_decay:
                gradient = gradient + local.weight_decay * self.parameters[name]
            update[name] = -local.lr * gradient
        return update

    def _unrolled_steps(self, x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        """The update of all local steps on the same pictures, one after the other."""
        local = self.protocol.local
        start = self.parameters
        weights = dict(start)
        momenta: dict[str, Tensor] = {}
        for _ in range(self.protocol.steps):
            for name, gradient in self._step_gradients(weights, x, labels, graph).items():
                step = self._with_extra_terms(name, gradient, weights[name])
                if local.momentum:
                    if name in momenta:
                        step = step + local.momentum * momenta[name]
                    momenta[name] = step
                weights[name] = weights[name] - local.lr * step
        update = {name: weights[name] - start[name] for name in start}
        if self.drift:  # `target` is without it
            update = {name: update[name] + self.protocol.path_length * self.drift[name] for name in update}
        return update

    def _with_extra_terms(self, name: str, gradient: Tensor, weight: Tensor) -> Tensor:
        """A gradient with the terms that do not depend on the pictures."""
        local = self.protocol.local
        if local.weight_decay:
            gradient = gradient + local.weight_decay * weight
        if self.drift:
            gradient = gradient + self.drift[name]
        if self.protocol.proximal:
            gradient = gradient + 2 * self.protocol.proximal * (weight - self.parameters[name])
        return gradient

    def _step_gradients(
        self, weights: Mapping[str, Tensor], x: Tensor, labels: Tensor, graph: bool
    ) -> dict[str, Tensor]:
        """The gradients of one step; each picture's own is clipped where the protocol clips per example."""
        bound = self.protocol.bound if self.protocol.clip == "per-example" else None
        if bound is None:
            return self._gradients(weights, x, labels, graph)
        total: dict[str, Tensor] = {}
        for place in range(len(x)):
            example = self._gradients(weights, x[place : place + 1], labels[place : place + 1], graph)
            factor = (bound / joint_norm(example.values()).clamp_min(1e-12)).clamp(max=1) / len(x)
            total = {name: gradient * factor + total.get(name, 0) for name, gradient in example.items()}
        return total

    def _gradients(self, weights: Mapping[str, Tensor], x: Tensor, labels: Tensor, graph: bool) -> dict[str, Tensor]:
        own_weights = weights is self.parameters
        logits = self.module(x) if own_weights else functional_call(self.module, dict(weights), (x,))
        loss = functional.cross_entropy(logits, labels)
        names = list(weights)
        gradients = torch.autograd.grad(loss, [weights[name] for name in names], create_graph=graph)
        return dict(zip(names, gradients, strict=True))

    def _clipped(self, sent: dict[str, Tensor]) -> dict[str, Tensor]:
        assert self.protocol.bound is not None
        factor = (self.protocol.bound / joint_norm(sent.values()).clamp_min(1e-12)).clamp(max=1)
        return {name: tensor * factor for name, tensor in sent.items()}

    # --- how well an upload explains the target ------------------------------------------------------------

    def distance(self, sent: Mapping[str, Tensor]) -> Tensor:
        """The squared distance as a share of the target's squared norm; 0 explains everything."""
        if self.direction_only:
            return self.cosine_distance(sent)
        squares = [(tensor - self.target[name]).square().sum() for name, tensor in self._masked(sent)]
        return torch.stack(squares).sum() / self.squared_norm

    def cosine_distance(self, sent: Mapping[str, Tensor]) -> Tensor:
        """One minus the cosine between an upload and the target."""
        pairs = [(tensor.flatten(), self.target[name].flatten()) for name, tensor in self._masked(sent)]
        inner = torch.stack([torch.dot(tensor, target) for tensor, target in pairs]).sum()
        length = torch.stack([torch.dot(tensor, tensor) for tensor, _ in pairs]).sum().clamp_min(1e-30).sqrt()
        return 1 - inner / (length * self.squared_norm.sqrt())

    def picture_angle(self, pictures: Tensor, labels: Tensor) -> Tensor:
        """`cosine_distance` of the upload of these pictures, if possible without the gradients of linear layers.

        The gradient of a linear layer is δᵀ·a, with δ (m, outputs) the gradient of its output and a (m, inputs) its
        input. Inner products of such gradients need only δ and a, not the matrix.
        """
        layers = self._linear_layers
        if not layers:
            return self.cosine_distance(self.upload(pictures, labels))
        self._activations.clear()
        loss = functional.cross_entropy(self.module(self.normalised(pictures)), labels)
        outputs = [self._activations[name][1] for name in layers]
        gradients = torch.autograd.grad(loss, [*outputs, *self._other_parameters], create_graph=True)
        biases: list[Tensor] = []
        inner: list[Tensor] = []
        length: list[Tensor] = []
        for name, gradient in zip(layers, gradients, strict=False):
            inputs = self._activations[name][0]
            inner.append(((gradient @ self.target[f"{name}.weight"]) * inputs).sum())
            length.append(((gradient @ gradient.T) * (inputs @ inputs.T)).sum())
            if f"{name}.bias" in self.target:
                biases.append(gradient.sum(0))
        # One tensor for all the rest: with several restarts in parallel, each Python call waits for the other threads.
        others = [gradient.reshape(-1) for gradient in gradients[len(layers) :]]
        flat = torch.cat([*biases, *others, self._flat_target[:0]])
        inner.append(torch.dot(flat, self._flat_target))
        length.append(torch.dot(flat, flat))
        sign = 1 if self.protocol.kind == "gradient" else -1
        norms = torch.stack(length).sum().clamp_min(1e-30).sqrt() * self.squared_norm.sqrt()
        return 1 - sign * torch.stack(inner).sum() / norms

    @cached_property
    def _other_parameters(self) -> list[Tensor]:
        """The parameters outside `_linear_layers`."""
        return [self.parameters[name] for name in self._other_names]

    @cached_property
    def _other_names(self) -> list[str]:
        return [name for name in self.parameters if name.rpartition(".")[0] not in self._linear_layers]

    @cached_property
    def _flat_target(self) -> Tensor:
        """The target's biases of linear layers, then its other layers, in one piece."""
        biases = [f"{name}.bias" for name in self._linear_layers if f"{name}.bias" in self.target]
        pieces = [self.target[name].reshape(-1) for name in (*biases, *self._other_names)]
        return torch.cat(pieces or [torch.zeros(0, device=self.device)])

    @cached_property
    def _activations(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Inputs and outputs of each of `_linear_layers` in the last forward pass."""
        activations: dict[str, tuple[Tensor, Tensor]] = {}

        def record(name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            del module
            activations[name] = (inputs[0], output)

        for name in self._linear_layers:
            self.module.get_submodule(name).register_forward_hook(partial(record, name))
        return activations

    @cached_property
    def _linear_layers(self) -> tuple[str, ...]:
        """The linear layers, if the upload is one plain step from the pictures; otherwise none."""
        one_step = self.protocol.kind == "gradient" or self.direction_only or self.protocol.steps == 1
        altered = self.masks or self.protocol.clip == "per-example" or self.protocol.local.weight_decay
        if not one_step or altered:
            return ()
        layers = [name for name, layer in self.module.named_modules() if isinstance(layer, nn.Linear)]
        return tuple(name for name in layers if f"{name}.weight" in self.target)

    def unexplained(self, pictures: Tensor, labels: Tensor) -> float:
        """The share of the target that these pictures do not explain; every attack is measured by it."""
        with torch.enable_grad():
            sent = self.upload(pictures.detach(), labels, graph=False)
        if self.direction_only:
            cosine = 1 - float(self.cosine_distance(sent).detach())
            return 1 - cosine * abs(cosine)
        return float(self.distance(sent).detach())

    def _masked(self, sent: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
        """The upload with zeros where the mask let nothing through."""
        return [(name, tensor * self.masks[name] if name in self.masks else tensor) for name, tensor in sent.items()]

    @cached_property
    def labels(self) -> Tensor:
        """The classes behind the upload, sorted."""
        return labels_of(self)


def target_of(exposure: Exposure, names: Sequence[str]) -> tuple[dict[str, Tensor], float]:
    """What the adversary received, in the sign of one client's upload, and the noise on each of its coordinates."""
    protocol = exposure.protocol
    received = {name: exposure.upload.model[name] for name in names}
    # An outsider and a client receive the change of the model, which goes against the gradient.
    turned = protocol.kind == "gradient" and exposure.view in ("outsider", "client")
    scale = 1 / protocol.server_step if single_change(exposure) else 1.0
    return weights.scale(received, -scale if turned else scale), protocol.std * scale


def single_change(exposure: Exposure) -> bool:
    """Whether the change of the model is exactly one other upload, times the server step.

    A participant has subtracted its own upload; for an outsider the round had one client.
    """
    protocol = exposure.protocol
    sees_models = exposure.view in ("client", "outsider")
    return sees_models and protocol.uploads == 1 and protocol.server_step > 0 and not exposure.lacks


def drift_of(exposure: Exposure, names: Sequence[str]) -> dict[str, Tensor]:
    """The server's control variate minus the client's; empty if there is none, or this observer does not know it."""
    if not exposure.protocol.drift or "c_k" not in exposure.known:
        return {}
    return weights.subtract({name: exposure.packet.extra["control"][name] for name in names}, exposure.known["c_k"])


def joint_norm(tensors: Iterable[Tensor]) -> Tensor:
    """The norm of all tensors as one vector."""
    return torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt()


def first_linear(module: nn.Module) -> tuple[str, str] | None:
    """The names of the weight and the bias of the first layer; None if that layer is not linear."""
    for name, layer in module.named_modules():
        if next(layer.parameters(recurse=False), None) is not None:
            return (f"{name}.weight", f"{name}.bias") if isinstance(layer, nn.Linear) else None
    return None


def total_variation(pictures: Tensor) -> Tensor:
    """The mean absolute difference of neighbouring pixels, down plus across."""
    down = (pictures[..., 1:, :] - pictures[..., :-1, :]).abs().mean()
    across = (pictures[..., 1:] - pictures[..., :-1]).abs().mean()
    return down + across
