"""One client trained by a method alone, with a seed of the test's choice.

Two methods need not draw the same noise in a run. With the same seeds here, a test can check that two methods are equal
up to what one of them adds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from engine.compute.context import ClientContext
from engine.compute.threads import ThreadTeam
from engine.methods import Method
from engine.records import Packet, Private, Seat, Upload, Weights
from engine.seeds import Seeds
from engine.training.plan import LoadedPlan


def trained_alone(
    plan: LoadedPlan,
    method: Method | None = None,
    client: int = 0,
    *,
    packet: Packet | None = None,
    private: Private | None = None,
    seeds: Seeds | None = None,
    round: int = 1,
) -> tuple[Upload, Private | None]:
    """The upload and the private part of one client in a cohort of its own."""
    method = method or plan.method
    seat = Seat(client, 0, round, 1, 1, 1)
    packet = packet or method.send(seat, plan.world.weights, method.begin(plan.world))
    with ThreadTeam(1) as team:
        context = ClientContext(plan.world, seat, seeds or Seeds(0), team)
        return method.train(plan.client(client), packet, private, context)


def whole_batch_steps(
    plan: LoadedPlan, client: int, start: Weights, term: Callable[[str, Tensor], Tensor | float]
) -> dict[str, Tensor]:
    """The weights after plain steps on all the client's data, each with an extra term: g + term(name, weight).

    Computed with torch alone, for runs whose batch holds all the data of a client.
    """
    data = plan.client(client)
    assert len(data.y) <= plan.world.local.batch
    module = plan.world.build(torch.Generator())
    for name, parameter in module.named_parameters():
        parameter.data.copy_(start[name])
    for _ in range(plan.world.local.epochs):
        parameters = dict(module.named_parameters())
        loss = functional.cross_entropy(module(data.x), data.y)
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        with torch.no_grad():
            for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
                parameter.sub_(plan.world.local.lr * (gradient + term(name, parameter)))
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
