"""An exposure holds what the server sees and public facts; the truth is stored apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.errors import Damaged
from engine.events import Kept
from engine.records import Exposure, Local, Packet, Protocol, Samples, Upload, Weights
from engine.training.exposure import pack, recorded_exposure, summed, true_inputs, unpack
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, train_round
from tests.engine.makers import tiny_spec

METHODS = ["fedavg", "fedsgd", "udp-fedavg", "dp-fedavg", "scaffold"]
MLP = {"name": "mlp", "hidden": 8}


@cache
def first_exchange(method: str) -> tuple[LoadedPlan, Exchange]:
    plan = load_plan(tiny_spec(method=method, model=MLP))
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    return plan, exchanges[0]


def after_storage(exposure: Exposure) -> Exposure:
    """The exposure after it was written to JSON and arrays, and read back."""
    facts, payload = pack(exposure)
    arrays = {name: np.array(values) for name, values in payload.items()}
    return unpack(json.loads(json.dumps(facts, allow_nan=False)), arrays)


def equal(exposure: Exposure, other: Exposure) -> bool:
    return (
        same_tensors(exposure.packet.model, other.packet.model)
        and same_tensors(exposure.upload.model, other.upload.model)
        and same_slots(exposure.packet.extra, other.packet.extra)
        and same_slots(exposure.upload.extra, other.upload.extra)
        and same_slots(exposure.known, other.known)
        and public_facts(exposure) == public_facts(other)
    )


def same_tensors(tensors: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    return tensors.keys() == others.keys() and all(torch.equal(tensors[name], others[name]) for name in tensors)


def test_a_sum_holds_the_extra_tensors_and_a_union_of_samples() -> None:
    _, exchange = first_exchange("scaffold")
    total = summed(exchange.uploads)
    for slot in ("control",):
        for name, tensor in total.extra[slot].items():
            expected = torch.stack([upload.extra[slot][name] for upload in exchange.uploads]).sum(0)
            torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-6)
    parts = [Upload(k, "samples", samples=Samples(torch.full((2, 3), k), torch.tensor([k, k]))) for k in (1, 2)]
    union = summed(parts).samples
    assert union is not None and union.y.tolist() == [1, 1, 2, 2] and union.x.shape == (4, 3)


def same_slots(slots: Mapping[str, Weights], others: Mapping[str, Weights]) -> bool:
    return slots.keys() == others.keys() and all(same_tensors(slots[slot], others[slot]) for slot in slots)


def public_facts(exposure: Exposure) -> tuple[Any, ...]:
    return (exposure.view, exposure.protocol, exposure.shape, exposure.classes, exposure.tampered)


@pytest.mark.parametrize("method", METHODS)
def test_an_exposure_holds_what_the_server_sent_and_received(method: str) -> None:
    plan, exchange = first_exchange(method)
    for slot, upload in enumerate(exchange.uploads):
        exposure = recorded_exposure(plan, exchange, slot)
        assert exposure.view == "server" and not exposure.tampered
        assert exposure.upload is upload and exposure.packet is exchange.packets[slot]
        assert (exposure.shape, exposure.classes, exposure.protocol.uploads) == ((1, 28, 28), 10, 1)


@pytest.mark.parametrize("method", METHODS)
def test_an_exposure_survives_json_and_arrays(method: str) -> None:
    plan, exchange = first_exchange(method)
    exposure = recorded_exposure(plan, exchange)
    assert equal(after_storage(exposure), exposure)


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_is_exactly_the_pictures_that_entered_the_upload(method: str) -> None:
    plan, exchange = first_exchange(method)
    data = plan.spec.dataset.load()
    for slot, seat in enumerate(exchange.seats):
        truth, used = true_inputs(plan, exchange, slot), exchange.used[slot]
        places = plan.train[seat.client] if used is None else plan.train[seat.client][used]
        assert torch.equal(truth["labels"], data.train_y[places])
        torch.testing.assert_close(truth["pictures"], data.train_x[places], atol=1e-5, rtol=0)
        assert float(truth["pictures"].min()) >= 0 and float(truth["pictures"].max()) <= 1
        assert recorded_exposure(plan, exchange, slot).protocol.pictures == len(places)
        expected = {"fedsgd": (100, 100), "dp-fedavg": (170, 250)}  # DP-SGD draws 1 - (2/3)³ of 300
        low, high = expected.get(method, (300, 300))
        assert low <= len(places) <= high
        assert len(places.unique()) == len(places)


def test_an_exposure_has_no_field_for_a_secret() -> None:
    """An observer has no seed, generator, batch indices or truth. Check that a new field gives it none of them."""
    assert {field.name for field in fields(Exposure)} == {
        "view", "packet", "upload", "protocol", "shape", "classes", "tampered", "own", "known", "lacks",
        "at_once",
    }  # fmt: skip
    assert {field.name for field in fields(Packet)} == {"model", "extra"}
    assert {field.name for field in fields(Upload)} == {"client", "kind", "model", "extra", "samples", "public"}
    assert {field.name for field in fields(Protocol)} == {
        "kind", "local", "steps", "batch", "drawing", "loss", "proximal", "clip", "bound", "noise", "std", "mask",
        "server_step", "uploads", "mean", "scale", "pictures", "share", "coding", "drift",
    }  # fmt: skip
    assert {field.name for field in fields(Local)} == {"epochs", "batch", "lr", "momentum", "weight_decay"}


def leaves(value: Any) -> list[Any]:
    """Every value inside a record, at any depth."""
    if is_dataclass(value):
        children = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, tuple | list):
        children = list(value)
    else:
        return [value]
    return [leaf for child in children for leaf in leaves(child)]


@pytest.mark.parametrize("method", METHODS)
def test_an_exposure_holds_only_numbers_words_and_weights(method: str) -> None:
    plan, exchange = first_exchange(method)
    exposure = recorded_exposure(plan, exchange)
    values = leaves(exposure)
    assert {type(value) for value in values} <= {str, int, float, bool, type(None), Tensor}
    shapes = [tensor.shape for tensor in plan.world.weights.values()]
    # SCAFFOLD sends and receives a control variate beside the model, and the server knows the client's.
    models = 5 if method == "scaffold" else 2
    assert [value.shape for value in values if isinstance(value, Tensor)] == shapes * models
    facts, payload = pack(exposure)
    extra = {"sent+", "received+", "known"} if method == "scaffold" else set()
    assert {key.split("/")[0] for key in payload} == {"sent", "received", *extra}
    assert set(facts) == {"view", "protocol", "shape", "classes", "tampered"}


def test_a_run_records_one_client_of_its_first_and_last_round_and_the_truth_apart() -> None:
    spec = tiny_spec(method="udp-fedavg", model=MLP, rounds=3)
    events = [event for event in run(spec) if isinstance(event, Kept)]
    exposures = [event for event in events if event.kind == "exposure"]
    truths = [event for event in events if event.kind == "truth"]
    plan = load_plan(spec)
    recorded = [(event.round, event.facts["client"]) for event in exposures]
    assert recorded == [(1, plan.cohort(1)[0]), (3, plan.cohort(3)[0])]
    assert [(event.round, event.facts["client"]) for event in truths] == recorded
    exchanges: list[Exchange] = []
    with ThreadTeam(1) as team:
        train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    payload = exposures[0].payload
    assert payload is not None and set(truths[0].payload or ()) == {"pictures", "labels"}
    assert equal(unpack(exposures[0].facts, payload), recorded_exposure(plan, exchanges[0]))


BROKEN: dict[str, Any] = {
    "no view": lambda facts, arrays: facts.pop("view"),
    "no local settings": lambda facts, arrays: facts["protocol"].pop("local"),
    "a fact of a newer version": lambda facts, arrays: facts["protocol"].update(seed=1),
    "an array of another kind": lambda facts, arrays: arrays.update({"truth/x": np.zeros(1)}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_unreadable_exposure_is_refused_as_damaged(broken: str) -> None:
    plan, exchange = first_exchange("fedavg")
    facts, payload = pack(recorded_exposure(plan, exchange))
    facts, arrays = json.loads(json.dumps(facts)), dict(payload)
    BROKEN[broken](facts, arrays)
    with pytest.raises(Damaged, match=r"^exposure: cannot be read .*Delete it and record it again\.$"):
        unpack(facts, arrays)
