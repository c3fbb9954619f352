"""A run on another device trains, tests and stores what it does on the processor, and mixes no tensors of both.

The device is that of tests/engine/second_device.py, because no machine with a graphics card was available.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.compute.context import ClientContext
from engine.compute.devices import on_device
from engine.compute.threads import ThreadTeam
from engine.events import Event, Kept, Warned
from engine.methods import METHODS
from engine.models import MODELS
from engine.records import Client, Seat, World
from engine.results.report import run_facts
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import Plan, make_plan
from tests.engine.makers import accuracies, tiny_spec
from tests.engine.second_device import second_device

ALONE = "lenet-sigmoid"
STACKED = {"name": "mlp", "dropout": 0.4, "hidden": 16}
TEXT = {"dataset": "movie-reviews", "model": "lstm", "lr": 0.5}
CLIENTS = (0, 1)
PICTURES = 6


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with second_device(monkeypatch) as name:
        yield name


def stored(events: list[Event]) -> dict[tuple[str, str], bytes]:
    """What a run stores: states, uploads and the truth behind them."""
    arrays: dict[tuple[str, str], bytes] = {}
    for event in events:
        if isinstance(event, Kept) and event.kind != "checkpoint":
            arrays |= {(event.name, name): array.tobytes() for name, array in (event.payload or {}).items()}
    return arrays


def check_run(spec: RunSpec, device: str) -> None:
    here = list(run(spec))
    there = list(run(spec, device=device))
    assert run_facts(here).get("device") is None and run_facts(there)["device"] == "cuda:0, second device"
    assert stored(there) == stored(here)
    assert accuracies(there) == pytest.approx(accuracies(here), abs=1e-3)  # the processor tests in its own layout


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS.names())
def test_a_run_of_every_method_stores_the_same(name: str, device: str) -> None:
    check_run(tiny_spec(method=METHODS[name]().trial(), model=STACKED), device)


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS.names())
def test_it_does_where_each_client_has_a_model_of_its_own(name: str, device: str) -> None:
    check_run(tiny_spec(method=METHODS[name]().trial(), model=ALONE, clients=100, sampled=3, rounds=1), device)


@pytest.mark.long
def test_a_run_on_text_gives_the_same_accuracy(device: str) -> None:
    spec = tiny_spec(rounds=1, clients=400, sampled=2, **TEXT)
    assert accuracies(run(spec, device=device)) == pytest.approx(accuracies(run(spec)), abs=2e-3)


@pytest.mark.slow
def test_a_stored_checkpoint_resumes_on_either_device(device: str) -> None:
    spec = tiny_spec(method="ppsgd", model=STACKED, rounds=3)  # its clients keep a private part
    whole = stored(list(run(spec)))
    stops = iter([True])
    kept = [event for event in run(spec, stop=lambda: next(stops)) if isinstance(event, Kept)]
    checkpoint = next(event for event in kept if event.kind == "checkpoint")
    events = list(run(spec, checkpoint, device=device))
    resumed = stored(events)
    assert resumed and resumed.items() <= whole.items()
    moved = "after round 1 the run moved from cpu to cuda:0, second device"
    assert moved in [event.reason for event in events if isinstance(event, Warned)]


# --- every model, a step of training -----------------------------------------------------------------------


def trained(plan: Plan, world: World, x: Tensor, y: Tensor) -> list[Tensor]:
    """The uploads of two clients with the same few records."""
    method = plan.method
    with ThreadTeam(1) as team:
        seats = [Seat(id, id, 1, 1, 1, len(CLIENTS)) for id in CLIENTS]
        contexts = [ClientContext(world, seat, plan.seeds, team) for seat in seats]
        packets = [method.send(seat, world.weights, method.begin(world)) for seat in seats]
        clients = [Client(id, x, y) for id in CLIENTS]
        results = method.train_all(clients, packets, [None] * len(CLIENTS), contexts)
    return [tensor for upload, _ in results for tensor in upload.model.values()]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "dp-fedavg"])
@pytest.mark.parametrize("model", MODELS.names())
def test_every_model_trains_there(model: str, method: str, device: str) -> None:
    data = {"dataset": "movie-reviews"} if model == "lstm" else {}
    plan = make_plan(tiny_spec(method=method, model=model, batch=4, **data))
    sizes = (PICTURES,) * plan.world.clients
    here = replace(plan.world, sizes=sizes)
    x = torch.rand(PICTURES, *here.shape, generator=torch.Generator().manual_seed(0), device="cpu")
    x = x if here.pictures else (9 * x).long()
    y = torch.arange(PICTURES, device="cpu") % here.classes
    uploads = trained(plan, here, x, y)
    there = replace(here, weights=on_device(here.weights, torch.device(device)))
    uploads_there = trained(plan, there, x.to(device), y.to(device))
    assert {str(tensor.device) for tensor in uploads_there} == {device}
    for tensor, expected in zip(uploads_there, uploads, strict=True):
        # The processor chooses another convolution for its own tensors, so the last digits differ.
        torch.testing.assert_close(tensor.cpu(), expected, rtol=1e-3, atol=2e-4)
