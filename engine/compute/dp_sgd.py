"""Record-level DP-SGD in a client: Poisson batches, clipping per example (Opacus' ghost clipping), Gaussian noise."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.compute import noise
from engine.compute.context import ClientContext
from engine.compute.sgd import NO_CHANGE, StepChange, copied, descend, seed_dropout
from engine.errors import RunFailed
from engine.records import Client, Local, Weights, World

_thread = threading.local()
_import_lock = threading.Lock()


def batch_rate(size: int, local: Local) -> float:
    """The probability that a record is in a batch."""
    return min(1.0, local.batch / size)


def steps_per_epoch(size: int, local: Local) -> int:
    return max(1, size // local.batch)


def fit_private(
    context: ClientContext,
    start: Weights,
    client: Client,
    *,
    bound: float,
    multiplier: float,
    extra: StepChange = NO_CHANGE,
) -> Weights:
    """The weights after DP-SGD from `start`.

    Each step samples every record with the same probability, and an empty batch still adds noise. The accounting
    assumes both: a step skipped for an empty batch would reveal that the batch is empty.
    `extra` is added after the noise. It does not touch the data, so it costs no ε.
    """
    local = context.world.local
    size = len(client.y)
    rate = batch_rate(size, local)
    ghost, parameters = loaded_ghost_module(context.world, start, bound)
    names: list[str] = _thread.names
    start = {name: start[name] for name in names}
    seed_dropout(ghost, context.rng("dropout"))
    batch_rng = context.rng("batches")
    noise_rng = context.noise()
    used = torch.zeros(size, dtype=torch.bool, device=client.y.device)
    momenta: list[Tensor] | None = None
    for _ in range(local.epochs * steps_per_epoch(size, local)):
        batch = poisson_batch(client, rate, batch_rng)
        used |= batch
        y = client.y[batch]
        sums = clipped_sum(ghost, parameters, perturbed(ghost, client.x[batch], y, extra), y)
        noised = noise.gaussian_added(dict(zip(names, sums, strict=True)), multiplier * bound, noise_rng)
        gradients = [tensor / (rate * size) for tensor in noised.values()]
        momenta = descend(parameters, gradients, momenta, context.world, start, extra)
    context.used = torch.nonzero(used).flatten()
    return copied(zip(names, parameters, strict=True))


def poisson_batch(client: Client, rate: float, rng: torch.Generator) -> Tensor:
    """A batch as a mask: every record is in it with the same probability."""
    uniforms = torch.rand(len(client.y), generator=rng, dtype=torch.float64, device="cpu")
    return (uniforms < rate).to(client.y.device)


def perturbed(ghost: Any, x: Tensor, y: Tensor, extra: StepChange) -> Tensor:
    """The inputs of a batch, perturbed if the method does so. The hooks must not record the passes of that."""
    if extra.perturb is None or len(y) == 0:
        return x
    ghost.disable_hooks()
    try:
        return extra.inputs(ghost, x, y)
    finally:
        ghost.enable_hooks()


class NoisedGradients:
    """Gradients of Poisson batches of one client, clipped by example and noised. Each is one access to its data."""

    def __init__(self, context: ClientContext, client: Client, bound: float, multiplier: float) -> None:
        self._world, self._client = context.world, client
        self._bound, self._multiplier = bound, multiplier
        self._rate = batch_rate(len(client.y), context.world.local)
        self._batches, self._noise = context.rng("batches"), context.noise()
        self._dropout = context.rng("dropout")
        self.used = torch.zeros(len(client.y), dtype=torch.bool, device=client.y.device)

    def at(self, weights: Weights) -> dict[str, Tensor]:
        """The gradient at these weights, by parameter. An empty batch gives noise alone."""
        ghost, parameters = loaded_ghost_module(self._world, weights, self._bound)
        seed_dropout(ghost, self._dropout)
        batch = poisson_batch(self._client, self._rate, self._batches)
        self.used |= batch
        sums = clipped_sum(ghost, parameters, self._client.x[batch], self._client.y[batch])
        noised = noise.gaussian_added(
            dict(zip(_thread.names, sums, strict=True)), self._multiplier * self._bound, self._noise
        )
        expected = self._rate * len(self._client.y)
        return {name: tensor / expected for name, tensor in noised.items()}


def clipped_mean(context: ClientContext, weights: Weights, x: Tensor, y: Tensor, bound: float) -> dict[str, Tensor]:
    """The mean over the examples of their gradients, each shortened to `bound`. No noise is added."""
    ghost, parameters = loaded_ghost_module(context.world, weights, bound)
    seed_dropout(ghost, context.rng("dropout"))
    sums = clipped_sum(ghost, parameters, x, y)
    return {name: tensor / max(1, len(y)) for name, tensor in zip(_thread.names, sums, strict=True)}


def clipped_sum(ghost: Any, parameters: list[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """The sum of the clipped gradients of the examples: one backward pass for the norms, and one for the sum."""
    if len(y) == 0:
        return [torch.zeros_like(parameter) for parameter in parameters]
    losses = functional.cross_entropy(ghost(x.contiguous()), y, reduction="none")
    losses.sum().backward(retain_graph=True)
    for parameter in parameters:
        parameter.grad = None
    factors = ghost.get_clipping_coef()
    if not bool(torch.isfinite(losses).all() and torch.isfinite(ghost.get_norm_sample()).all()):
        raise RunFailed(
            "a gradient contains values that are not finite numbers, so it cannot be clipped", "Lower the learning rate"
        )
    ghost.disable_hooks()
    try:
        return list(torch.autograd.grad((factors.detach() * losses).sum(), parameters))
    finally:
        ghost.enable_hooks()


def loaded_ghost_module(world: World, weights: Weights, bound: float) -> tuple[Any, list[Tensor]]:
    """This thread's own module with Opacus' hooks and these weights; its parameters in the model's own order."""
    device = next(iter(weights.values())).device
    owner = (id(world.build), bound, device)
    if getattr(_thread, "owner", None) != owner:
        # The clip must bound each example's gradient. With channels last, Opacus 1.6 computes wrong norms for
        # convolutions, and the clip would bound nothing: so the layout stays contiguous.
        module = world.build(torch.Generator()).to(device)
        parameters = dict(module.named_parameters())
        _thread.names = list(parameters)
        _thread.parameters = list(parameters.values())
        _thread.ghost = ghost_module(module, bound)
        _thread.world = world  # keeps `world.build` alive, so that no other object has its id
        _thread.owner = owner
    with torch.no_grad():
        for name, parameter in zip(_thread.names, _thread.parameters, strict=True):
            parameter.copy_(weights[name])
    _thread.ghost.train()
    return _thread.ghost, _thread.parameters


def ghost_module(module: nn.Module, bound: float) -> Any:
    """The module with Opacus' hooks. After a backward pass it holds the norm of each example's gradient."""
    wrapper = _ghost_class()
    for name, layer in list(module.named_modules()):
        if isinstance(layer, nn.LSTM):
            module.set_submodule(name, _opacus_lstm(layer))
    return wrapper(module, max_grad_norm=bound, use_ghost_clipping=True, loss_reduction="sum")


def _opacus_lstm(layer: nn.LSTM) -> Any:
    """The same layer as Opacus builds it, cell by cell: hooks cannot reach into torch's own LSTM.

    It shares the parameters of the original, under the same names but in another order.
    """
    from opacus.layers import DPLSTM

    with torch.device("meta"):  # else its initial weights would be drawn from torch's global generator
        opened = DPLSTM(layer.input_size, layer.hidden_size, layer.num_layers, layer.bias, layer.batch_first)
    for inner_name, name in opened.old_to_new.items():
        cell, _, leaf = inner_name.rpartition(".")
        parameter = layer.get_parameter(name)
        setattr(opened.get_submodule(cell), leaf, parameter)
        setattr(opened, name, parameter)
    return opened


def _ghost_class() -> Any:
    """The class of Opacus. Its import takes a second, and other threads must not see a half-imported module."""
    with _import_lock:
        from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping

        # torch warns at every pass that the picture itself needs no gradient
        warnings.filterwarnings("ignore", message=".*[Bb]ackward hook is firing.*")
        return GradSampleModuleFastGradientClipping
