"""A stacked step of several clients equals their steps one by one, dropout included."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from engine.models.mlp import Mlp
from engine.seeds import Seeds

ROWS = [[6, 6, 4], [6, 2, 1], [3, 1]]  # pictures of each client in three steps; the last client finishes first
LR = 0.3


def mlp(**values) -> Mlp:
    return Mlp.model_validate(values)


def seeded(purpose, *place):
    return Seeds(7).rng(purpose, *place)


def modules_of(part, count):
    """Modules in training mode, each with the dropout generator of its client."""
    modules = [part.build((1, 8, 8), 4, seeded("weights", client)).train() for client in range(count)]
    for client, module in enumerate(modules):
        module.dropout.generator = seeded("dropout", client)
    return modules


def batches(step, rows):
    """Pictures and labels of each client in one step: lists, because clients finish at different times."""
    x = [torch.rand(row, 1, 8, 8, generator=seeded("x", step, client)) for client, row in enumerate(rows)]
    y = [torch.randint(0, 4, (row,), generator=seeded("y", step, client)) for client, row in enumerate(rows)]
    return x, y


@torch.no_grad()
def descend(parameters, gradients):
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.sub_(gradient, alpha=LR)


def step_alone(module, x, y):
    """One SGD step of one client; the gradients of this step."""
    gradients = torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))
    descend(module.parameters(), gradients)
    return gradients


def step_stacked(part, stack, x, y, rngs):
    """The same step for all clients at once, in place; the gradients of each client."""
    rows = [len(pictures) for pictures in x]
    active = {key: tensor[: len(rows)] for key, tensor in stack.items()}
    pictures, labels = (pad_sequence(column, batch_first=True) for column in (x, y))
    gradients = part.stacked(active, pictures, labels, rngs[: len(rows)], rows)
    descend(active.values(), [gradients[key] for key in active])
    return [[gradients[key][client] for key in active] for client in range(len(rows))]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("bias", [False, True])
def test_stacked_steps_equal_steps_one_by_one(dropout, bias):
    part = mlp(dropout=dropout, bias=bias, hidden=16)
    modules = modules_of(part, 3)
    named = [dict(module.named_parameters()) for module in modules]
    stack = {key: torch.stack([parameters[key].detach() for parameters in named]) for key in named[0]}
    rngs = [seeded("dropout", client) for client in range(3)]
    for step, rows in enumerate(ROWS):
        x, y = batches(step, rows)
        together = step_stacked(part, stack, x, y, rngs)
        alone = [step_alone(*arguments) for arguments in zip(modules, x, y, strict=False)]
        for first, second in zip(together, alone, strict=True):
            torch.testing.assert_close(first, list(second), atol=1e-5, rtol=1e-5)
    for client, parameters in enumerate(named):
        for key, parameter in parameters.items():
            torch.testing.assert_close(stack[key][client], parameter.detach(), atol=1e-5, rtol=1e-5)
        if dropout:  # both have drawn equally often
            next_draw = torch.rand(3, generator=modules[client].dropout.generator)
            assert torch.equal(torch.rand(3, generator=rngs[client]), next_draw)


def test_the_masks_equal_those_of_the_module():
    part = mlp(dropout=0.5, hidden=9)
    module = part.build((1, 4, 4), 3, seeded("weights", 0)).train()
    layer = module.get_submodule("dropout")
    rng = seeded("dropout", 0)
    layer.generator = seeded("dropout", 0)
    for batch in (5, 2):
        torch.testing.assert_close(part.dropout_mask(rng, batch), layer(torch.ones(batch, 9)), atol=0, rtol=0)
    assert mlp().dropout_mask(rng, 5) is None
