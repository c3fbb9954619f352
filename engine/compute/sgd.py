"""Local training by SGD: of one client, and of several clients stacked into one model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.compute.context import ClientContext, generators
from engine.records import Client, Weights, World

STACK = 5  # clients per stacked group: fixed, so that results do not depend on the number of threads
FAST_LAYOUT = torch.channels_last  # half the time of a convolution on a processor
PLAIN_LAYOUT = torch.contiguous_format  # for second derivatives, which channels last slows down, and for vmap
T = TypeVar("T")
_thread = threading.local()


# The inputs of a step, changed by a method: from the module, the inputs and the labels of a batch.
Perturb = Callable[[nn.Module, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class StepChange:
    """What a method changes in local training, with and without DP-SGD.

    Each step uses g + offset + 2 · pull · (w - start), with g at the perturbed inputs.
    """

    offset: Weights | None = None
    pull: float = 0.0
    only: tuple[str, ...] = ()  # the weights that are trained; empty: all
    perturb: Perturb | None = None

    def inputs(self, module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        """The inputs of a batch, perturbed if the method does so."""
        return x if self.perturb is None else self.perturb(module, x, y).detach()


NO_CHANGE = StepChange()


def fit(
    contexts: Sequence[ClientContext],
    starts: Sequence[Weights],
    clients: Sequence[Client],
    extras: Sequence[StepChange] = (),
) -> list[Weights]:
    """Train every client from its start. Clients are stacked if the model supports it, else they train in parallel."""
    extras = extras or [NO_CHANGE] * len(clients)
    world = contexts[0].world
    team = contexts[0].team
    one_by_one = any(extra.perturb for extra in extras) or contexts[0].losses is not None
    if world.stacked is None or one_by_one:  # a stack has neither a module nor a loss of one client
        return team.each(fit_one, contexts, starts, clients, extras, progress=contexts[0].progress)
    order = sorted(range(len(clients)), key=lambda index: (-len(clients[index].y), clients[index].id))
    groups = [order[at : at + STACK] for at in range(0, len(order), STACK)]
    trained = team.each(
        fit_stacked,
        _grouped(contexts, groups),
        _grouped(starts, groups),
        _grouped(clients, groups),
        _grouped(extras, groups),
        progress=contexts[0].progress,
    )
    weights: dict[int, Weights] = {}
    for group, group_weights in zip(groups, trained, strict=True):
        weights.update(zip(group, group_weights, strict=True))
    return [weights[index] for index in range(len(clients))]


def _grouped(values: Sequence[T], groups: Sequence[Sequence[int]]) -> list[list[T]]:
    return [[values[index] for index in group] for group in groups]


def fit_one(context: ClientContext, start: Weights, client: Client, extra: StepChange = NO_CHANGE) -> Weights:
    """The weights of one client after its epochs of SGD from `start`."""
    local = context.world.local
    module, parameters = loaded_module(context.world, start)
    if extra.only:
        start = {name: start[name] for name, _ in module.named_parameters() if name in extra.only}
        parameters = [module.get_parameter(name) for name in start]
    seed_dropout(module, context.rng("dropout"))
    shuffle = context.rng("batches")
    momenta: list[Tensor] | None = None
    for _ in range(local.epochs):
        order = torch.randperm(len(client.y), generator=shuffle, device="cpu").to(client.y.device)
        for batch in order.split(local.batch):
            x = image_layout(extra.inputs(module, client.x[batch], client.y[batch]))
            loss = functional.cross_entropy(module(x), client.y[batch])
            if context.losses is not None:
                context.losses.append(float(loss.detach()))
            gradients = list(torch.autograd.grad(loss, parameters))
            momenta = descend(parameters, gradients, momenta, context.world, start, extra)
    return copied(module.named_parameters())


def copied(parameters: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Contiguous copies of named parameters, without their history."""
    copies: dict[str, Tensor] = {}
    for name, parameter in parameters:
        copies[name] = parameter.detach().clone(memory_format=torch.contiguous_format)
    return copies


@torch.no_grad()
def descend(
    parameters: list[Tensor],
    gradients: list[Tensor],
    momenta: list[Tensor] | None,
    world: World,
    start: Weights,
    extra: StepChange,
) -> list[Tensor] | None:
    """One SGD step in place. Returns the momenta for the next step."""
    local = world.local
    if local.weight_decay:
        torch._foreach_add_(gradients, parameters, alpha=local.weight_decay)
    if extra.offset is not None:
        torch._foreach_add_(gradients, [extra.offset[name] for name in start])
    if extra.pull:
        drift = torch._foreach_sub(parameters, list(start.values()))
        torch._foreach_add_(gradients, drift, alpha=2 * extra.pull)
    if local.momentum:
        if momenta is not None:
            torch._foreach_add_(gradients, momenta, alpha=local.momentum)
        momenta = gradients
    torch._foreach_add_(parameters, gradients, alpha=-local.lr)
    return momenta


def fit_stacked(
    contexts: Sequence[ClientContext],
    starts: Sequence[Weights],
    clients: Sequence[Client],
    extras: Sequence[StepChange],
) -> list[Weights]:
    """The same as `fit_one` for a group of clients at once. They are sorted by size, largest first.

    A client with fewer examples finishes each epoch earlier, so the active clients are always the first rows.
    """
    world = contexts[0].world
    local = world.local
    assert world.stacked is not None
    sizes = [len(client.y) for client in clients]
    stack = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}  # (clients, ...)
    anchor = {name: tensor.clone() for name, tensor in stack.items()} if any(extra.pull for extra in extras) else stack
    shuffles = generators(contexts, "batches")
    dropouts = generators(contexts, "dropout")
    first = clients[0].x
    new = first.new_empty if sizes[0] == sizes[-1] else first.new_zeros  # padding rows must not hold NaN
    x = new(len(clients), sizes[0], *first.shape[1:])
    y = clients[0].y.new_zeros(len(clients), sizes[0])
    momenta: dict[str, Tensor] = {}
    for _ in range(local.epochs):
        for row, client in enumerate(clients):
            order = torch.randperm(sizes[row], generator=shuffles[row], device="cpu").to(x.device)
            torch.index_select(client.x, 0, order, out=x[row, : sizes[row]])
            y[row, : sizes[row]] = client.y[order]
        for low in range(0, sizes[0], local.batch):
            batch_sizes = [min(size - low, local.batch) for size in sizes if size > low]
            active = len(batch_sizes)
            batch = slice(low, low + batch_sizes[0])
            weights = {name: tensor[:active] for name, tensor in stack.items()}
            gradients = world.stacked(weights, x[:active, batch], y[:active, batch], dropouts[:active], batch_sizes)
            _descend_stacked(weights, gradients, momenta, world, anchor, extras[:active])
    return [{name: tensor[row].clone() for name, tensor in stack.items()} for row in range(len(clients))]


@torch.no_grad()
def _descend_stacked(
    weights: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    momenta: dict[str, Tensor],
    world: World,
    anchor: Mapping[str, Tensor],
    extras: Sequence[StepChange],
) -> None:
    """One SGD step of the active clients, in place: `weights` are views of the stack."""
    local = world.local
    active = len(extras)
    for name, parameter in weights.items():
        if extras[0].only and name not in extras[0].only:
            continue
        gradient = gradients[name]
        if local.weight_decay:
            gradient.add_(parameter, alpha=local.weight_decay)
        if extras[0].offset is not None:
            gradient.add_(torch.stack([extra.offset[name] for extra in extras if extra.offset is not None]))
        if extras[0].pull:
            gradient.add_(parameter - anchor[name][:active], alpha=2 * extras[0].pull)
        if local.momentum:
            if name not in momenta:
                momenta[name] = torch.zeros_like(gradient)
            gradient.add_(momenta[name][:active], alpha=local.momentum)
            momenta[name][:active] = gradient
        parameter.sub_(gradient, alpha=local.lr)


def gradient(context: ClientContext, weights: Weights, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean loss over these examples."""
    module, parameters = loaded_module(context.world, weights)
    seed_dropout(module, context.rng("dropout"))
    gradients = torch.autograd.grad(functional.cross_entropy(module(image_layout(x)), y), parameters)
    names = [name for name, _ in module.named_parameters()]
    return {name: tensor.contiguous() for name, tensor in zip(names, gradients, strict=True)}


@torch.no_grad()
def scores(world: World, weights: Weights, x: Tensor) -> Tensor:
    """The logits of a trained model, in eval mode."""
    module, _ = loaded_module(world, weights)
    module.eval()
    logits: Tensor = module(x if x.is_mkldnn else image_layout(x))
    return logits.to_dense() if logits.is_mkldnn else logits


def parts_to_score(world: World, x: Tensor) -> list[Tensor]:
    """Examples for `scores`, in parts that fit into the processor's cache.

    A model that can be stacked has linear layers only. These are faster in the layout of oneDNN: on processors of AMD
    it multiplies large matrices twice as fast as MKL.
    """
    if not (world.stacked and x.is_cpu):
        return list(x.split(100))
    return [part.to_mkldnn() for part in x.split(1000)]


def loaded_module(
    world: World, weights: Weights, layout: torch.memory_format = FAST_LAYOUT
) -> tuple[nn.Module, list[Tensor]]:
    """This thread's own module with these weights, for inputs from `image_layout` with the same layout.

    No two threads have the same module: clients never share hooks or weights.
    """
    if getattr(_thread, "owner", None) is not world.build:
        _thread.modules = {}
        _thread.owner = world.build
    device = next(iter(weights.values())).device
    modules: dict[tuple[torch.memory_format, torch.device], nn.Module] = _thread.modules
    if (layout, device) not in modules:
        built: Any = world.build(torch.Generator())  # torch's types do not know that `to` takes a layout
        modules[layout, device] = built.to(device, memory_format=layout)
    module = modules[layout, device]
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(weights[name])
    module.train()
    parameters: list[Tensor] = list(module.parameters())
    return module, parameters


def seed_dropout(module: nn.Module, rng: torch.Generator) -> None:
    """Give the generator to every layer that has a `generator` attribute."""
    for layer in module.modules():
        if hasattr(layer, "generator"):
            setattr(layer, "generator", rng)  # noqa: B010  (torch types every attribute of a module as a tensor)


def image_layout(x: Tensor, layout: torch.memory_format = FAST_LAYOUT) -> Tensor:
    """Pictures in the memory layout of the module, and other data as they are."""
    return x.contiguous(memory_format=layout) if x.dim() == 4 else x
