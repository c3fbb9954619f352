"""FedSGD: one gradient per batch, and each picture at most once per epoch."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from engine.compute import weights
from engine.compute.context import ClientContext
from engine.compute.threads import ThreadTeam
from engine.methods.per_batch.fedsgd import FedSGD
from engine.records import Local, Seat, World
from engine.seeds import Seeds
from engine.training.plan import load_plan, make_plan
from engine.training.rounds import Exchange, first_state, train_round
from tests.engine.makers import tiny_spec

MLP = {"name": "mlp", "hidden": 8}


@cache
def tiny_world() -> World:
    return make_plan(tiny_spec()).world


def world_of(sizes: tuple[int, ...], epochs: int, batch: int) -> World:
    return replace(tiny_world(), sizes=sizes, clients=len(sizes), local=Local(epochs, batch, 0.1))


def drawn_batches(method: FedSGD, world: World, client: int, round: int = 1) -> list[torch.Tensor]:
    """The places of the pictures in every exchange of a round."""
    exchanges = method.exchanges(world)
    batches = []
    for exchange in range(1, exchanges + 1):
        seat = Seat(client, 0, round, exchange, exchanges, 1)
        context = ClientContext(world, seat, Seeds(5), None)  # type: ignore[arg-type]
        batches.append(method.batch(world.sizes[client], context))
    return batches


sizes = st.lists(st.integers(1, 60), min_size=1, max_size=5).map(tuple)


@settings(max_examples=50)
@given(sizes, st.integers(1, 3), st.integers(1, 70))
def test_batches_are_disjoint_within_an_epoch(sizes: tuple[int, ...], epochs: int, batch: int) -> None:
    world, method = world_of(sizes, epochs, batch), FedSGD()
    per_epoch = max(1, min(sizes) // batch)
    assert method.exchanges(world) == epochs * per_epoch
    for client, size in enumerate(sizes):
        batches = drawn_batches(method, world, client)
        assert all(len(places) == min(size, batch) for places in batches)
        for epoch in range(epochs):
            together = torch.cat(batches[epoch * per_epoch : (epoch + 1) * per_epoch])
            assert len(together.unique()) == len(together) and int(together.max()) < size


def test_the_smallest_client_uses_all_its_pictures_and_larger_ones_leave_some_out() -> None:
    world = world_of((20, 27), epochs=1, batch=10)
    small, large = (torch.cat(drawn_batches(FedSGD(), world, client)) for client in (0, 1))
    assert small.sort().values.tolist() == list(range(20))
    assert len(large) == 20


def test_every_epoch_and_every_round_has_its_own_order() -> None:
    world = world_of((64, 64), epochs=2, batch=32)
    first = drawn_batches(FedSGD(), world, 0)
    second = drawn_batches(FedSGD(), world, 0, round=2)
    other_client = drawn_batches(FedSGD(), world, 1)
    orders = [torch.cat(batches) for batches in (first[:2], first[2:], second[:2], other_client[:2])]
    assert all(not torch.equal(a, b) for a, b in combinations(orders, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, drawn_batches(FedSGD(), world, 0), strict=True))


@pytest.mark.parametrize(("size", "batch"), [(64, 8), (5, 8), (8, 8)])
def test_one_batch_a_round(size: int, batch: int) -> None:
    world, method = world_of((size, 100), epochs=3, batch=batch), FedSGD(batches="one")
    assert method.exchanges(world) == 1
    rounds = [drawn_batches(method, world, 0, round)[0] for round in range(1, 41)]
    assert all(len(places.unique()) == min(size, batch) for places in rounds)
    assert len({tuple(places.tolist()) for places in rounds}) > 30  # a new batch in each round
    assert len(torch.cat(rounds).unique()) > 0.9 * size  # and from all pictures


@pytest.mark.parametrize(("fields", "count"), [({}, 3), ({"epochs": 2}, 6), ({"batch": 280}, 1), ({"batch": 5000}, 1)])
def test_a_round_has_one_exchange_per_batch(fields: dict[str, Any], count: int) -> None:
    plan = load_plan(tiny_spec(method="fedsgd", model=MLP, sampled=2, **fields))
    exchanges: list[Exchange] = []
    with ThreadTeam(1) as team:
        train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    assert len(exchanges) == count
    for number, exchange in enumerate(exchanges, start=1):
        assert [seat.exchange for seat in exchange.seats] == [number, number]


def test_each_exchange_is_a_step_against_the_mean_gradient() -> None:
    method = {"name": "fedsgd", "server-step": 0.5}
    plan = load_plan(tiny_spec(method=method, model=MLP, sampled=3, lr=0.2))
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        state = train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    module = plan.world.build(torch.Generator())
    for exchange in exchanges:
        gradients = []
        for seat, packet, used in zip(exchange.seats, exchange.packets, exchange.used, strict=True):
            assert packet.model is exchange.before and used is not None and len(used) == 100
            for name, parameter in module.named_parameters():
                parameter.data.copy_(packet.model[name])
            client = plan.client(seat.client)
            loss = functional.cross_entropy(module(client.x[used]), client.y[used])
            slopes = torch.autograd.grad(loss, list(module.parameters()))
            gradients.append(dict(zip(packet.model, slopes, strict=True)))
        for upload, expected in zip(exchange.uploads, gradients, strict=True):
            assert upload.kind == "gradient" and upload.public == {}
            for name, tensor in upload.model.items():
                torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=1e-6)
        stepped = weights.add(exchange.before, weights.total(gradients), -0.5 * 0.2 / 3)
        for name, tensor in exchange.after.items():
            torch.testing.assert_close(tensor, stepped[name], rtol=1e-4, atol=1e-6)
    assert state.server is exchanges[-1].after


def test_the_public_facts() -> None:
    world = world_of((20, 5), epochs=2, batch=10)
    large, small = (FedSGD(server_step=2.0).protocol(world, Seat(client, 0, 1, 1, 4, 2), "server") for client in (0, 1))
    assert (large.kind, large.steps, large.batch, large.drawing, large.uploads) == ("gradient", 1, 10, "shuffled", 1)
    assert (small.batch, small.drawing) == (5, "whole")
    assert large.server_step == pytest.approx(0.2) and large.clip == large.noise == "none"
    assert FedSGD().protocol(world, Seat(0, 0, 1, 1, 4, 2), "aggregate").uploads == 2
    assert FedSGD().guarantee(world).status == "none" and FedSGD().unit() is None
