"""Record-level DP-SGD inside a client: Poisson batches, a clip per example (Opacus' ghost clipping), Gaussian noise."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.compute import noise
from engine.compute.context import ClientContext
from engine.compute.sgd import PLAIN, Extra, descend, seed_dropout
from engine.errors import RunFailed
from engine.records import Client, Local, Weights, World

_here = threading.local()
_door = threading.Lock()


def batch_rate(size: int, local: Local) -> float:
    """The chance of one record to be in one batch."""
    return min(1.0, local.batch / size)


def steps_per_epoch(size: int, local: Local) -> int:
    return max(1, size // local.batch)


def fit_private(
    context: ClientContext, start: Weights, client: Client, *, bound: float, multiplier: float, extra: Extra = PLAIN
) -> Weights:
    """DP-SGD from `start`: each step sees every record with one chance, so an empty batch is noise alone.

    `extra` is added after the noise: it touches no data, so it costs nothing.
    """
    local, size = context.world.local, len(client.y)
    rate = batch_rate(size, local)
    ghost, parameters = ghost_bench(context.world, start, bound)
    names: list[str] = _here.names
    start = {name: start[name] for name in names}
    seed_dropout(ghost, context.rng("dropout"))
    drawing, noising = context.rng("batches"), context.rng("noise")
    seen, momenta = torch.zeros(size, dtype=torch.bool), None
    for _ in range(local.epochs * steps_per_epoch(size, local)):
        drawn = torch.rand(size, generator=drawing, dtype=torch.float64) < rate
        seen |= drawn
        sums = clipped_sum(ghost, parameters, client.x[drawn], client.y[drawn])
        noised = noise.gaussian_added(dict(zip(names, sums, strict=True)), multiplier * bound, noising)
        slopes = [tensor / (rate * size) for tensor in noised.values()]
        momenta = descend(parameters, slopes, momenta, context.world, start, extra)
    context.used = torch.nonzero(seen).flatten()
    return {
        name: p.detach().clone(memory_format=torch.contiguous_format) for name, p in zip(names, parameters, strict=True)
    }


def clipped_sum(ghost: Any, parameters: list[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """The sum of the examples' gradients, each clipped: one backward pass for the norms, one for the sum."""
    if len(y) == 0:
        return [torch.zeros_like(parameter) for parameter in parameters]
    losses = functional.cross_entropy(ghost(x.contiguous()), y, reduction="none")
    losses.sum().backward(retain_graph=True)
    for parameter in parameters:
        parameter.grad = None
    shares = ghost.get_clipping_coef()
    if not bool(torch.isfinite(losses).all() and torch.isfinite(ghost.get_norm_sample()).all()):
        raise RunFailed(
            "a gradient is no longer made of finite numbers, and no clip can bound it", "Lower the learning rate"
        )
    ghost.disable_hooks()
    try:
        return list(torch.autograd.grad((shares.detach() * losses).sum(), parameters))
    finally:
        ghost.enable_hooks()


def ghost_bench(world: World, weights: Weights, bound: float) -> tuple[Any, list[Tensor]]:
    """This thread's own module under Opacus' hooks, holding these weights; its parameters in the model's own order."""
    if getattr(_here, "owner", None) != (id(world.build), bound):
        # never channels last here: Opacus 1.6 then gets the norms of convolutions wrong, and the clip bounds nothing
        module = world.build(torch.Generator()).to(next(iter(weights.values())).device)
        named = dict(module.named_parameters())
        _here.names, _here.parameters = list(named), list(named.values())
        _here.ghost = ghostly(module, bound)
        _here.world, _here.owner = world, (id(world.build), bound)
    with torch.no_grad():
        for name, parameter in zip(_here.names, _here.parameters, strict=True):
            parameter.copy_(weights[name])
    _here.ghost.train()
    return _here.ghost, _here.parameters


def ghostly(module: nn.Module, bound: float) -> Any:
    """The module under Opacus' hooks: after a backward pass it knows how long each example's gradient is."""
    wrapper = _ghost_class()
    for name, layer in list(module.named_modules()):
        if isinstance(layer, nn.LSTM):
            module.set_submodule(name, _open_lstm(layer))
    return wrapper(module, max_grad_norm=bound, use_ghost_clipping=True, loss_reduction="sum")


def _open_lstm(layer: nn.LSTM) -> Any:
    """The same layer as Opacus builds it, a cell at a time: no hook can look into torch's own.

    It holds the very parameters of the other, under their names, if in another order.
    """
    from opacus.layers import DPLSTM

    with torch.device("meta"):  # its first weights would be drawn from torch's own generator
        opened = DPLSTM(layer.input_size, layer.hidden_size, layer.num_layers, layer.bias, layer.batch_first)
    for inside, name in opened.old_to_new.items():
        cell, _, leaf = inside.rpartition(".")
        parameter = layer.get_parameter(name)
        setattr(opened.get_submodule(cell), leaf, parameter)
        setattr(opened, name, parameter)
    return opened


def _ghost_class() -> Any:
    """Opacus is a second of imports, and half-imported modules are seen by other threads: one at a time."""
    with _door:
        from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping

        # the picture itself needs no gradient, and torch says so at every pass
        warnings.filterwarnings("ignore", message=".*[Bb]ackward hook is firing.*")
        return GradSampleModuleFastGradientClipping
