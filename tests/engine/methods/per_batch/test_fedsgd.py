"""FedSGD: one gradient per batch, and every picture at most once an epoch."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
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
from engine.training.rounds import Exchange, opening, play
from tests.engine.makers import tiny

MLP = {"name": "mlp", "hidden": 8}


@cache
def plain() -> World:
    return make_plan(tiny()).world


def world(sizes: tuple[int, ...], epochs: int, batch: int) -> World:
    return replace(plain(), sizes=sizes, clients=len(sizes), local=Local(epochs, batch, 0.1))


def drawn(method: FedSGD, here: World, client: int, round: int = 1) -> list[torch.Tensor]:
    """The places of the pictures of every exchange of a round."""
    of = method.exchanges(here)
    contexts = [
        ClientContext(here, Seat(client, 0, round, exchange, of, 1), Seeds(5), None)  # type: ignore[arg-type]
        for exchange in range(1, of + 1)
    ]
    return [method.batch(here.sizes[client], context) for context in contexts]


sizes = st.lists(st.integers(1, 60), min_size=1, max_size=5).map(tuple)


@settings(max_examples=50)
@given(sizes, st.integers(1, 3), st.integers(1, 70))
def test_batches_are_disjoint_within_an_epoch(sizes: tuple[int, ...], epochs: int, batch: int) -> None:
    here, method = world(sizes, epochs, batch), FedSGD()
    per_epoch = max(1, min(sizes) // batch)
    assert method.exchanges(here) == epochs * per_epoch
    for client, size in enumerate(sizes):
        found = drawn(method, here, client)
        assert all(len(places) == min(size, batch) for places in found)
        for epoch in range(epochs):
            together = torch.cat(found[epoch * per_epoch : (epoch + 1) * per_epoch])
            assert len(together.unique()) == len(together) and int(together.max()) < size


def test_the_smallest_client_uses_all_it_has_and_the_remainder_is_left_out() -> None:
    here = world((20, 27), epochs=1, batch=10)
    small, large = (torch.cat(drawn(FedSGD(), here, client)) for client in (0, 1))
    assert small.sort().values.tolist() == list(range(20))
    assert len(large) == 20


def test_every_epoch_and_every_round_has_an_order_of_its_own() -> None:
    here = world((64, 64), epochs=2, batch=32)
    one, two = drawn(FedSGD(), here, 0), drawn(FedSGD(), here, 0, round=2)
    orders = [torch.cat(one[:2]), torch.cat(one[2:]), torch.cat(two[:2]), torch.cat(drawn(FedSGD(), here, 1)[:2])]
    assert all(not torch.equal(a, b) for place, a in enumerate(orders) for b in orders[:place])
    assert all(torch.equal(a, b) for a, b in zip(one, drawn(FedSGD(), here, 0), strict=True))


@pytest.mark.parametrize(("size", "batch"), [(64, 8), (5, 8), (8, 8)])
def test_one_batch_a_round(size: int, batch: int) -> None:
    here, method = world((size, 100), epochs=3, batch=batch), FedSGD(batches="one")
    assert method.exchanges(here) == 1
    rounds = [drawn(method, here, 0, round)[0] for round in range(1, 41)]
    assert all(len(places.unique()) == min(size, batch) for places in rounds)
    assert len({tuple(places.tolist()) for places in rounds}) > 30  # drawn anew each round
    assert len(torch.cat(rounds).unique()) > 0.9 * size  # and from all pictures


@pytest.mark.parametrize(
    ("asked", "exchanges"), [({}, 3), ({"epochs": 2}, 6), ({"batch": 280}, 1), ({"batch": 5000}, 1)]
)
def test_a_round_exchanges_once_for_every_batch(asked: dict[str, Any], exchanges: int) -> None:
    there, seen = load_plan(tiny(method="fedsgd", model=MLP, sampled=2, **asked)), list[Exchange]()
    with ThreadTeam(1) as team:
        play(there, opening(there), 1, team, watch=seen.append)
    assert len(seen) == exchanges
    assert [seat.exchange for one in seen for seat in one.seats] == [
        n for n in range(1, exchanges + 1) for _ in range(2)
    ]


def test_each_exchange_is_a_step_against_the_mean_gradient() -> None:
    method = {"name": "fedsgd", "server-step": 0.5}
    there, seen = load_plan(tiny(method=method, model=MLP, sampled=3, lr=0.2)), list[Exchange]()
    with ThreadTeam(2) as team:
        state = play(there, opening(there), 1, team, watch=seen.append)
    module = there.world.build(torch.Generator())
    for one in seen:
        gradients = []
        for seat, packet, used in zip(one.seats, one.packets, one.used, strict=True):
            assert packet is one.before and used is not None and len(used) == 100
            for name, parameter in module.named_parameters():
                parameter.data.copy_(packet[name])
            client = there.client(seat.client)
            loss = functional.cross_entropy(module(client.x[used]), client.y[used])
            slopes = torch.autograd.grad(loss, list(module.parameters()))
            gradients.append(dict(zip(packet, slopes, strict=True)))
        for upload, expected in zip(one.uploads, gradients, strict=True):
            assert upload.kind == "gradient" and upload.public == {}
            for name, tensor in upload.tensors.items():
                torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=1e-6)
        stepped = weights.add(one.before, weights.total(gradients), -0.5 * 0.2 / 3)
        for name, tensor in one.after.items():
            torch.testing.assert_close(tensor, stepped[name], rtol=1e-4, atol=1e-6)
    assert state.server is seen[-1].after


def test_the_public_facts() -> None:
    here = world((20, 5), epochs=2, batch=10)
    large, small = (FedSGD(server_step=2.0).protocol(here, Seat(client, 0, 1, 1, 4, 2), "server") for client in (0, 1))
    assert (large.kind, large.steps, large.batch, large.drawing, large.uploads) == ("gradient", 1, 10, "shuffled", 1)
    assert (small.batch, small.drawing) == (5, "whole")
    assert large.server_step == pytest.approx(0.2) and large.clip == large.noise == "none"
    assert FedSGD().protocol(here, Seat(0, 0, 1, 1, 4, 2), "aggregate").uploads == 2
    assert FedSGD().guarantee(here).status == "none" and FedSGD().unit() is None
