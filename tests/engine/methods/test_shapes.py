"""Uploads on the meta device, where tensors have a shape and no numbers.

As on a graphics card, arithmetic with a tensor that stayed on the processor fails.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.compute import weights
from engine.compute.context import ClientContext
from engine.compute.threads import ThreadTeam
from engine.methods import METHODS
from engine.methods.averaging.base import Averaging
from engine.methods.base import Method, Trained
from engine.records import Client, Seat, Weights, World
from engine.training.plan import Plan, make_plan
from tests.engine.makers import tiny_spec

CLIENTS = (0, 1)
ALONE = "lenet-sigmoid"
STACKED = {"name": "mlp", "dropout": 0.4, "hidden": 16}
# Methods that read a number of a tensor, and the error that they therefore end with. On meta there is no number.
CLIPS_THE_UPDATE = "Tensor.item() cannot be called on meta tensors"  # the norm says whether the clip shortens
DRAWS_BATCHES = "torch.nonzero()"  # the size of a Poisson batch is drawn
MEASURES_A_WAY = "Tensor.item()"  # the distance from the server's model says where a client stops
SORTS_BY_CLASS = "aten::_unique2"  # which classes there are
READS_NUMBERS = {
    "centaur": CLIPS_THE_UPDATE,
    "dp-fedavg": DRAWS_BATCHES,
    "dp-fedprox": DRAWS_BATCHES,
    "dsc": SORTS_BY_CLASS,
    "fedceo": CLIPS_THE_UPDATE,
    "fedceo-released": DRAWS_BATCHES,
    "feddm": SORTS_BY_CLASS,
    "fedlap": MEASURES_A_WAY,
    "fedlap-dp": DRAWS_BATCHES,
    "ppsgd": CLIPS_THE_UPDATE,
    "psg": DRAWS_BATCHES,
    "udp-fedavg": CLIPS_THE_UPDATE,
}
CLIPPED = [name for name, error in READS_NUMBERS.items() if error == CLIPS_THE_UPDATE]

each_model = pytest.mark.parametrize("model", [ALONE, STACKED], ids=["alone", "stacked"])


def meta_plan(method: str, model: Any) -> Plan:
    """A plan with the least work, and its first weights on meta."""
    plan = make_plan(tiny_spec(method=METHODS[method]().trial(), model=model))
    return replace(plan, world=replace(plan.world, weights=on_meta(plan.world.weights)))


def on_meta(tensors: Weights) -> Weights:
    return {name: tensor.to("meta") for name, tensor in tensors.items()}


def trained(plan: Plan) -> list[Trained]:
    """The uploads and private parts of two clients with data on meta."""
    world = plan.world
    method = plan.method
    clients: list[Client] = []
    for id in CLIENTS:
        x = torch.empty(world.sizes[id], *world.shape, device="meta")
        y = torch.empty(world.sizes[id], dtype=torch.int64, device="meta")
        clients.append(Client(id, x, y))
    with ThreadTeam(1) as team:  # its threads are new, so they have no module on another device
        seats = [Seat(id, id, 1, 1, 1, len(CLIENTS)) for id in CLIENTS]
        contexts = [ClientContext(world, seat, plan.seeds, team) for seat in seats]
        memory = method.begin(world)
        packets = [method.send(seat, world.weights, memory) for seat in seats]
        return method.train_all(clients, packets, [None] * len(CLIENTS), contexts)


def uploaded_weights(method: Method, world: World) -> Weights:
    """The weights that an upload is about: all, or those that clients share."""
    return method.shared_weights(world.weights, world) if isinstance(method, Averaging) else world.weights


def check_uploads(plan: Plan) -> None:
    expected = {name: tensor.shape for name, tensor in uploaded_weights(plan.method, plan.world).items()}
    for upload, private in trained(plan):
        if upload.samples is not None:
            assert tuple(upload.samples.x.shape[1:]) == plan.world.shape
            continue
        assert {name: tensor.shape for name, tensor in upload.model.items()} == expected
        for tensors in (upload.model, *upload.extra.values(), private or {}):
            assert all(tensor.is_meta for tensor in tensors.values())


@each_model
@pytest.mark.parametrize("name", [name for name in METHODS.names() if name not in READS_NUMBERS])
def test_an_upload_has_the_names_and_shapes_of_the_weights(name: str, model: Any) -> None:
    check_uploads(meta_plan(name, model))


@each_model
@pytest.mark.parametrize("name", CLIPPED)
def test_a_clipped_upload_does_too_once_its_norm_is_given(
    name: str, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "norm", lambda tensors: 10.0)
    check_uploads(meta_plan(name, model))


@each_model
@pytest.mark.parametrize("name", READS_NUMBERS)
def test_the_list_of_methods_that_read_numbers_is_up_to_date(name: str, model: Any) -> None:
    with pytest.raises(RuntimeError, match=re.escape(READS_NUMBERS[name])):
        trained(meta_plan(name, model))
