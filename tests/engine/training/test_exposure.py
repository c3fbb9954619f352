"""An exposure is what the server saw and public facts; the truth lies apart."""

from __future__ import annotations

import json
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
from engine.records import Exposure, Local, Protocol
from engine.training.exposure import pack, recorded_exposure, true_inputs, unpack
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, opening, play
from tests.engine.makers import tiny

METHODS = ["fedavg", "fedsgd", "udp-fedavg", "dp-fedavg"]
MLP = {"name": "mlp", "hidden": 8}


@cache
def seen(method: str) -> tuple[LoadedPlan, Exchange]:
    plan, found = load_plan(tiny(method=method, model=MLP)), list[Exchange]()
    with ThreadTeam(2) as team:
        play(plan, opening(plan), 1, team, watch=found.append)
    return plan, found[0]


def travelled(exposure: Exposure) -> Exposure:
    facts, payload = pack(exposure)
    arrays = {name: np.array(values) for name, values in payload.items()}
    return unpack(json.loads(json.dumps(facts, allow_nan=False)), arrays)


def equal(one: Exposure, other: Exposure) -> bool:
    sides = [(one.sent, other.sent), (one.received, other.received)]
    tensors = all(a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a) for a, b in sides)
    rest = [(e.view, e.protocol, e.shape, e.classes, e.tampered) for e in (one, other)]
    return tensors and rest[0] == rest[1]


@pytest.mark.parametrize("method", METHODS)
def test_what_is_recorded_is_what_the_server_sent_and_got(method: str) -> None:
    plan, exchange = seen(method)
    for slot, upload in enumerate(exchange.uploads):
        exposure = recorded_exposure(plan, exchange, slot)
        assert exposure.view == "server" and not exposure.tampered
        assert exposure.received is upload.tensors and exposure.sent is exchange.packets[slot]
        assert (exposure.shape, exposure.classes, exposure.protocol.uploads) == ((1, 28, 28), 10, 1)


@pytest.mark.parametrize("method", METHODS)
def test_an_exposure_travels_as_json_and_arrays(method: str) -> None:
    plan, exchange = seen(method)
    exposure = recorded_exposure(plan, exchange)
    assert equal(travelled(exposure), exposure)


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_is_every_picture_that_entered_and_only_those(method: str) -> None:
    plan, exchange = seen(method)
    data = plan.spec.dataset.load()
    for slot, seat in enumerate(exchange.seats):
        truth, used = true_inputs(plan, exchange, slot), exchange.used[slot]
        places = plan.train[seat.client] if used is None else plan.train[seat.client][used]
        assert torch.equal(truth["labels"], data.train_y[places])
        torch.testing.assert_close(truth["pictures"], data.train_x[places], atol=1e-5, rtol=0)
        assert float(truth["pictures"].min()) >= 0 and float(truth["pictures"].max()) <= 1
        assert recorded_exposure(plan, exchange, slot).protocol.pictures == len(places)
        low, high = {"fedsgd": (100, 100), "dp-fedavg": (170, 250)}.get(
            method, (300, 300)
        )  # 1 - (2/3)³ of 300 are drawn
        assert low <= len(places) <= high
        assert len(places.unique()) == len(places)


def test_an_exposure_has_no_place_for_a_secret() -> None:
    """Whoever adds a field must think here: no seed, no generator, no batch indices, no truth."""
    assert {one.name for one in fields(Exposure)} == {
        "view",
        "sent",
        "received",
        "protocol",
        "shape",
        "classes",
        "tampered",
    }
    assert {one.name for one in fields(Protocol)} == {
        "kind", "local", "steps", "batch", "drawing", "loss", "proximal", "clip", "bound", "noise", "std", "mask",
        "server_step", "uploads", "mean", "scale", "pictures",
    }  # fmt: skip
    assert {one.name for one in fields(Local)} == {"epochs", "batch", "lr", "momentum", "weight_decay"}


def held(value: Any) -> list[Any]:
    """Everything inside a record, however deep."""
    if is_dataclass(value):
        return [inner for one in fields(value) for inner in held(getattr(value, one.name))]
    if isinstance(value, dict | tuple | list):
        return [inner for one in (value.values() if isinstance(value, dict) else value) for inner in held(one)]
    return [value]


@pytest.mark.parametrize("method", METHODS)
def test_an_exposure_holds_numbers_words_and_weights_alone(method: str) -> None:
    plan, exchange = seen(method)
    exposure = recorded_exposure(plan, exchange)
    inside = held(exposure)
    assert {type(one) for one in inside} <= {str, int, float, bool, type(None), Tensor}
    shapes = [tensor.shape for tensor in plan.world.weights.values()]
    assert [one.shape for one in inside if isinstance(one, Tensor)] == [*shapes, *shapes]
    facts, payload = pack(exposure)
    assert {key.split("/")[0] for key in payload} == {"sent", "received"}
    assert set(facts) == {"view", "protocol", "shape", "classes", "tampered"}


def test_a_run_keeps_the_first_client_of_its_first_and_last_round_and_the_truth_apart() -> None:
    spec = tiny(method="udp-fedavg", model=MLP, rounds=3)
    kept = [one for one in run(spec) if isinstance(one, Kept)]
    exposures, truths = ([one for one in kept if one.kind == kind] for kind in ("exposure", "truth"))
    plan = load_plan(spec)
    assert [(one.round, one.facts["client"]) for one in exposures] == [(1, plan.cohort(1)[0]), (3, plan.cohort(3)[0])]
    assert [(one.round, one.facts["client"]) for one in truths] == [
        (one.round, one.facts["client"]) for one in exposures
    ]
    found: list[Exchange] = []
    with ThreadTeam(1) as team:
        play(plan, opening(plan), 1, team, watch=found.append)
    payload = exposures[0].payload
    assert payload is not None and set(truths[0].payload or ()) == {"pictures", "labels"}
    assert equal(unpack(exposures[0].facts, payload), recorded_exposure(plan, found[0]))


BROKEN: dict[str, Any] = {
    "no view": lambda facts, arrays: facts.pop("view"),
    "no local settings": lambda facts, arrays: facts["protocol"].pop("local"),
    "a fact of a newer version": lambda facts, arrays: facts["protocol"].update(seed=1),
    "an array of another kind": lambda facts, arrays: arrays.update({"truth/x": np.zeros(1)}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_cannot_be_read_is_damage(broken: str) -> None:
    plan, exchange = seen("fedavg")
    facts, payload = pack(recorded_exposure(plan, exchange))
    facts, arrays = json.loads(json.dumps(facts)), dict(payload)
    BROKEN[broken](facts, arrays)
    with pytest.raises(Damaged, match=r"^exposure: cannot be read .*Delete it and record it again\.$"):
        unpack(facts, arrays)
