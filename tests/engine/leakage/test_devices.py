"""An attack on another device finds what it finds on the processor: every attack, view and kind of upload.

The device is that of tests/engine/second_device.py, because no machine with a graphics card was available.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
import torch

from engine.attacks import ATTACKS
from engine.compute.devices import PROCESSOR
from engine.events import Event, Payload, Scored
from engine.leakage import pictures
from engine.leakage.attack import attack
from engine.leakage.processes import RestartRequest
from engine.leakage.target import AttackResources
from engine.specs.attack import MembershipSpec, PictureAttackSpec
from engine.specs.run import RunSpec
from tests.engine.attacks.pictures.makers import QUICK
from tests.engine.makers import replayable
from tests.engine.second_device import second_device

MODEL: Mapping[str, Any] = {"name": "mlp", "hidden": 8, "bias": True}
RUN: dict[str, Any] = {"model": MODEL, "clients": 100, "sampled": 4, "rounds": 2, "batch": 20, "epochs": 1}
LOOKS_AT_SAMPLES = "look"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with second_device(monkeypatch) as name:
        yield name


def picture_attack(name: str, method: str = "fedsgd", **fields: Any) -> PictureAttackSpec:
    few = {field: value for field, value in QUICK.items() if field in ATTACKS[name].model_fields}
    run = RunSpec(method=method, **RUN)
    given = {"pictures": ("test-7",), "round": 2, **fields}
    return PictureAttackSpec(run=run, attack={"name": name, **few}, **given)


def scored(events: Iterable[Event]) -> Scored:
    return next(event for event in events if isinstance(event, Scored))


def check(spec: PictureAttackSpec, device: str) -> None:
    there = replayable(attack(spec, device=device))
    assert there[0]["facts"].pop("device") == "cuda:0, second device"
    assert there == replayable(attack(spec))
    assert there[-1]["event"] == "finished"


NAMES = [part.name for part in ATTACKS if part.goal == "pictures" and part.name != LOOKS_AT_SAMPLES]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_picture_attack_finds_the_same(name: str, device: str) -> None:
    check(picture_attack(name), device)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "view"),
    [(method, view) for method in ("udp-fedavg", "fedceo") for view in ("outsider", "client")]
    + [("udp-fedavg", "aggregate")],
)
def test_every_other_view_does_too(method: str, view: str, device: str) -> None:
    check(picture_attack("inverting-gradients", method, view=view), device)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("dp-fedavg", {"pictures": ()}),  # the upload that the run recorded
        ("scaffold", {}),  # its control variates are known to the server
        pytest.param("udp-fedavg", {"upload": "cheat"}, marks=pytest.mark.long),
    ],
)
def test_every_kind_of_upload_does_too(method: str, fields: dict[str, Any], device: str) -> None:
    name = "imprint" if fields.get("upload") == "cheat" else "inverting-gradients"
    check(picture_attack(name, method, **fields), device)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["server", "outsider"])
def test_a_membership_attack_scores_the_same(view: str, device: str) -> None:
    spec = MembershipSpec(run=RunSpec(method="fedavg", **RUN), attack="loss-threshold", view=view)
    there, here = scored(attack(spec, device=device)), scored(attack(spec))
    assert (there.members, there.others) == (here.members, here.others)
    assert there.auc == pytest.approx(here.auc, abs=1e-4)  # the processor predicts in its own layout


# --- what leaves the device ----------------------------------------------------------------------------------


class PriorStore(AttackResources):
    """Keeps priors in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Payload] = {}

    def prior(self, name: str) -> Payload | None:
        return self.kept.get(name)

    def keep_prior(self, name: str, payload: Payload) -> None:
        self.kept[name] = payload


@pytest.mark.slow
def test_a_prior_that_another_device_learned_is_not_used_on_the_processor(device: str) -> None:
    store = PriorStore()
    list(attack(picture_attack("gias"), store, device=device))
    list(attack(picture_attack("gias"), store))
    here, there = sorted(store.kept, key=len)
    assert there == f"{here}-lazy"


@pytest.mark.slow
def test_restarts_receive_and_return_tensors_of_the_processor(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes run restarts, and a request that held tensors of a card would need the card to be read."""
    requests: list[RestartRequest] = []

    def made(*values: Any) -> RestartRequest:
        requests.append(RestartRequest(*values))
        return requests[-1]

    monkeypatch.setattr(pictures, "RestartRequest", made)
    list(attack(picture_attack("imprint", "fedavg"), device=device))
    request = requests[0]
    tensors = [*request.exposure.packet.model.values(), *request.exposure.upload.model.values()]
    guess = next(request.guesses(0))
    assert {tensor.device for tensor in (*tensors, guess.pictures, guess.labels)} == {PROCESSOR}
    assert request.build(torch.Generator()).get_parameter("rows.weight").device == PROCESSOR
