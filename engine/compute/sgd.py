"""Local training: plain SGD of one client, of many stacked into one, one gradient, and the DP step."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.compute.context import ClientContext, rngs
from engine.records import Client, Weights, World

STACK = 5  # clients in one stacked group: fixed, so that the bits do not depend on the number of threads
_here = threading.local()


@dataclass(frozen=True)
class Extra:
    """What a method changes in each local step: g + offset + 2 · pull · (w - start), and which weights move."""

    offset: Weights | None = None
    pull: float = 0.0
    only: tuple[str, ...] = ()  # the weights that move; none named: all of them


PLAIN = Extra()


def fit(
    contexts: Sequence[ClientContext],
    starts: Sequence[Weights],
    clients: Sequence[Client],
    extras: Sequence[Extra] = (),
) -> list[Weights]:
    """Train every client from its start; clients are stacked where the model can, else they share the team."""
    extras = extras or [PLAIN] * len(clients)
    world, team = contexts[0].world, contexts[0].team
    if world.stacked is None:
        return team.each(fit_one, contexts, starts, clients, extras, progress=contexts[0].progress)
    order = sorted(range(len(clients)), key=lambda place: (-len(clients[place].y), clients[place].id))
    groups = [order[at : at + STACK] for at in range(0, len(order), STACK)]
    rows = [[[column[place] for place in group] for group in groups] for column in (contexts, starts, clients, extras)]
    trained = [weights for group in team.each(fit_stacked, *rows, progress=contexts[0].progress) for weights in group]
    return [trained[order.index(place)] for place in range(len(clients))]


def fit_one(context: ClientContext, start: Weights, client: Client, extra: Extra = PLAIN) -> Weights:
    """One client's epochs of SGD, from `start` to the weights it ends with."""
    local = context.world.local
    module, parameters = bench(context.world, start)
    if extra.only:
        start = {name: start[name] for name, _ in module.named_parameters() if name in extra.only}
        parameters = [module.get_parameter(name) for name in start]
    seed_dropout(module, context.rng("dropout"))
    shuffle, momenta = context.rng("batches"), None
    for _ in range(local.epochs):
        order = torch.randperm(len(client.y), generator=shuffle)
        for places in order.split(local.batch):
            loss = functional.cross_entropy(module(image_layout(client.x[places])), client.y[places])
            slopes = list(torch.autograd.grad(loss, parameters))
            momenta = descend(parameters, slopes, momenta, context.world, start, extra)
    return {
        name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in module.named_parameters()
    }


@torch.no_grad()
def descend(
    parameters: list[Tensor],
    slopes: list[Tensor],
    momenta: list[Tensor] | None,
    world: World,
    start: Weights,
    extra: Extra,
) -> list[Tensor] | None:
    """One SGD step in place; returns the momenta to hand to the next one."""
    local = world.local
    if local.weight_decay:
        torch._foreach_add_(slopes, parameters, alpha=local.weight_decay)
    if extra.offset is not None:
        torch._foreach_add_(slopes, [extra.offset[name] for name in start])
    if extra.pull:
        drift = torch._foreach_sub(parameters, list(start.values()))
        torch._foreach_add_(slopes, drift, alpha=2 * extra.pull)
    if local.momentum:
        if momenta is not None:
            torch._foreach_add_(slopes, momenta, alpha=local.momentum)
        momenta = slopes
    torch._foreach_add_(parameters, slopes, alpha=-local.lr)
    return momenta


def fit_stacked(
    contexts: Sequence[ClientContext], starts: Sequence[Weights], clients: Sequence[Client], extras: Sequence[Extra]
) -> list[Weights]:
    """The same epochs for a group of clients at once, ordered by size, largest first.

    A client with fewer pictures leaves each epoch earlier: the active ones are always the first rows.
    """
    world, local = contexts[0].world, contexts[0].world.local
    assert world.stacked is not None
    sizes = [len(client.y) for client in clients]
    stack = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}  # (clients, ...)
    anchor = {name: tensor.clone() for name, tensor in stack.items()} if any(extra.pull for extra in extras) else stack
    shuffles, dropouts = rngs(contexts, "batches"), rngs(contexts, "dropout")
    room = torch.empty if sizes[0] == sizes[-1] else torch.zeros  # padding must not hold what is no number
    x = room(len(clients), sizes[0], *clients[0].x.shape[1:], device=clients[0].x.device)
    y = clients[0].y.new_zeros(len(clients), sizes[0])
    momenta: dict[str, Tensor] = {}
    for _ in range(local.epochs):
        for place, client in enumerate(clients):
            order = torch.randperm(sizes[place], generator=shuffles[place]).to(x.device)
            torch.index_select(client.x, 0, order, out=x[place, : sizes[place]])
            y[place, : sizes[place]] = client.y[order]
        for low in range(0, sizes[0], local.batch):
            rows = [min(size - low, local.batch) for size in sizes if size > low]
            active, part = len(rows), slice(low, low + rows[0])
            live = {name: tensor[:active] for name, tensor in stack.items()}
            slopes = world.stacked(live, x[:active, part], y[:active, part], dropouts[:active], rows)
            _descend_stacked(live, slopes, momenta, world, anchor, extras[:active])
    return [{name: tensor[place].clone() for name, tensor in stack.items()} for place in range(len(clients))]


@torch.no_grad()
def _descend_stacked(
    live: Mapping[str, Tensor],
    slopes: Mapping[str, Tensor],
    momenta: dict[str, Tensor],
    world: World,
    anchor: Mapping[str, Tensor],
    extras: Sequence[Extra],
) -> None:
    """One SGD step of the active clients, in place: `live` are views of the stack."""
    local, active = world.local, len(extras)
    for name, parameter in live.items():
        if extras[0].only and name not in extras[0].only:
            continue
        slope = slopes[name]
        if local.weight_decay:
            slope.add_(parameter, alpha=local.weight_decay)
        if extras[0].offset is not None:
            slope.add_(torch.stack([extra.offset[name] for extra in extras if extra.offset is not None]))
        if extras[0].pull:
            slope.add_(parameter - anchor[name][:active], alpha=2 * extras[0].pull)
        if local.momentum:
            if name not in momenta:
                momenta[name] = torch.zeros_like(slope)
            slope.add_(momenta[name][:active], alpha=local.momentum)
            momenta[name][:active] = slope
        parameter.sub_(slope, alpha=local.lr)


def gradient(context: ClientContext, weights: Weights, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean loss over these pictures."""
    module, parameters = bench(context.world, weights)
    seed_dropout(module, context.rng("dropout"))
    slopes = torch.autograd.grad(functional.cross_entropy(module(image_layout(x)), y), parameters)
    names = [name for name, _ in module.named_parameters()]
    return {name: slope.contiguous() for name, slope in zip(names, slopes, strict=True)}


@torch.no_grad()
def scores(world: World, weights: Weights, x: Tensor) -> Tensor:
    """Logits of a trained model, in eval mode."""
    module, _ = bench(world, weights)
    module.eval()
    logits: Tensor = module(image_layout(x))
    return logits


def bench(world: World, weights: Weights) -> tuple[nn.Module, list[Tensor]]:
    """This thread's own module, holding these weights (one module per thread: hooks and weights never mix)."""
    if getattr(_here, "owner", None) is not world.build:
        device = next(iter(weights.values())).device
        # channels last: half the time of a convolution on a processor
        _here.module = world.build(torch.Generator()).to(device)
        _here.module.to(memory_format=torch.channels_last)
        _here.owner = world.build
    module: nn.Module = _here.module
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(weights[name])
    module.train()
    parameters: list[Tensor] = list(module.parameters())
    return module, parameters


def seed_dropout(module: nn.Module, rng: torch.Generator) -> None:
    """Hand the generator to every layer that asks for chance."""
    for layer in module.modules():
        if hasattr(layer, "generator"):
            setattr(layer, "generator", rng)  # noqa: B010  (torch types every attribute of a module as a tensor)


def image_layout(x: Tensor) -> Tensor:
    """Pictures in the layout of the module."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
