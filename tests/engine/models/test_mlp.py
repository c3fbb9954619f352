"""Clients stacked into one step are the same clients one by one, dropout included."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from engine.models.mlp import Mlp
from engine.seeds import Seeds

ROWS = [[6, 6, 4], [6, 2, 1], [3, 1]]  # pictures of each client in three steps; the last client ends first
LR = 0.3


def mlp(**values) -> Mlp:
    return Mlp.model_validate(values)


def seeded(purpose, *place):
    return Seeds(7).rng(purpose, *place)


def modules_of(part, count):
    """Modules in training, each with the dropout generator of its client."""
    modules = [part.build((1, 8, 8), 4, seeded("weights", client)).train() for client in range(count)]
    for client, module in enumerate(modules):
        module.dropout.generator = seeded("dropout", client)
    return modules


def batches(step, rows):
    """Pictures and labels of each client in one step: lists, because clients end at different times."""
    x = [torch.rand(row, 1, 8, 8, generator=seeded("x", step, client)) for client, row in enumerate(rows)]
    return x, [torch.randint(0, 4, (row,), generator=seeded("y", step, client)) for client, row in enumerate(rows)]


@torch.no_grad()
def descend(parameters, slopes):
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.sub_(slope, alpha=LR)


def step_alone(module, x, y):
    """One SGD step of one client; the slopes it took."""
    slopes = torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))
    descend(module.parameters(), slopes)
    return slopes


def step_stacked(part, stack, x, y, rngs):
    """The same step for all clients at once, in place."""
    rows = [len(one) for one in x]
    live = {key: tensor[: len(rows)] for key, tensor in stack.items()}
    pictures, labels = (pad_sequence(column, batch_first=True) for column in (x, y))
    slopes = part.stacked(live, pictures, labels, rngs[: len(rows)], rows)
    descend(live.values(), [slopes[key] for key in live])
    return [[slopes[key][client] for key in live] for client in range(len(rows))]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("bias", [False, True])
def test_stacked_steps_equal_steps_one_by_one(dropout, bias):
    part = mlp(dropout=dropout, bias=bias, hidden=16)
    modules = modules_of(part, 3)
    named = [dict(module.named_parameters()) for module in modules]
    stack = {key: torch.stack([one[key].detach() for one in named]) for key in named[0]}
    rngs = [seeded("dropout", client) for client in range(3)]
    for step, rows in enumerate(ROWS):
        x, y = batches(step, rows)
        together = step_stacked(part, stack, x, y, rngs)
        alone = [step_alone(module, *mine) for module, *mine in zip(modules, x, y, strict=False)]
        for first, second in zip(together, alone, strict=True):
            torch.testing.assert_close(first, list(second), atol=1e-5, rtol=1e-5)
    for client, one in enumerate(named):
        for key, parameter in one.items():
            torch.testing.assert_close(stack[key][client], parameter.detach(), atol=1e-5, rtol=1e-5)
        if dropout:  # and both have drawn equally much
            left = torch.rand(3, generator=modules[client].dropout.generator)
            assert torch.equal(torch.rand(3, generator=rngs[client]), left)


def test_masks_are_those_of_the_module():
    part = mlp(dropout=0.5, hidden=9)
    module = part.build((1, 4, 4), 3, seeded("weights", 0)).train()
    layer, rng = module.get_submodule("dropout"), seeded("dropout", 0)
    layer.generator = seeded("dropout", 0)
    for batch in (5, 2):
        torch.testing.assert_close(part.dropout_masks(rng, batch), layer(torch.ones(batch, 9)), atol=0, rtol=0)
    assert mlp().dropout_masks(rng, 5) is None
