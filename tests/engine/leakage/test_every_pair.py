"""Every attack against every method: an answer, or one sentence why not, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.attacks import ATTACKS
from engine.errors import BadInput
from engine.events import Judged, Seen
from engine.leakage.compatibility import problem
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.methods import METHODS, Method
from engine.records import VIEWS, Seat
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import make_plan
from tests.engine.attacks.pictures.makers import QUICK
from tests.engine.methods.makers import PrivateHead, UploadsPictures

PICTURES = tuple(part.name for part in ATTACKS if part.goal == "pictures")
ADDED: dict[str, type[Method]] = {"test-private-head": PrivateHead, "test-uploads-pictures": UploadsPictures}
ALL_METHODS = (*METHODS.names(), *ADDED)
# One method of each family and kind of upload. All other pairs, and those of the attack that learns a generator first,
# are in the long set.
OF_EACH_FAMILY = ("fedavg", "scaffold", "fedsgd", "udp-fedavg", "dp-fedavg", "ppsgd", "fedceo", "test-uploads-pictures")
MODEL: dict[str, Any] = {"name": "mlp", "hidden": 8, "bias": True}


@pytest.fixture(autouse=True)
def registered_methods() -> Iterator[None]:
    for name, method in ADDED.items():
        METHODS.add(name, title="a test method", source="tests")(method)
    yield
    for name in ADDED:
        del METHODS._parts[name]


def request(method: str, name: str, view: str = "server", **fields: Any) -> AttackSpec:
    few = {field: value for field, value in QUICK.items() if field in ATTACKS[name].model_fields}
    run = RunSpec(method=method, model=MODEL, clients=8, sampled=4, rounds=2, batch=50, epochs=1)
    return AttackSpec(run=run, attack={"name": name, **few}, view=view, **{"pictures": ("test-7",), **fields})


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("name", PICTURES)
def test_a_pair_fits_or_says_why_not_without_training(method: str, name: str) -> None:
    plan = make_plan(request(method, name).run)
    samples = plan.method.protocol(plan.world, Seat(0, 0, 1, 1, 1, 4), "server").kind == "samples"
    for view in VIEWS:
        refusal = problem(request(method, name, view))
        if refusal:
            assert refusal.fatal and refusal.reason and refusal.remedy
            assert "\n" not in refusal.reason and not refusal.reason.endswith(".")
        if view == "server" and (name == "look") != samples:
            assert refusal is not None and "upload" in refusal.reason and refusal.remedy.startswith("Choose")


def answered(method: str, name: str) -> None:
    spec = request(method, name)
    if problem(spec):
        with pytest.raises(BadInput):
            list(attack(spec, AttackResources()))
        return
    events = list(attack(spec, AttackResources()))
    judged = next(event for event in events if isinstance(event, Judged))
    assert judged.attack == name and judged.numbers["psnr"]


@pytest.mark.slow
@pytest.mark.parametrize("method", OF_EACH_FAMILY)
@pytest.mark.parametrize("name", sorted({*PICTURES} - {"gias"}))
def test_a_pair_that_fits_gives_an_answer(method: str, name: str) -> None:
    answered(method, name)


@pytest.mark.long
@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("name", PICTURES)
def test_every_other_pair_gives_an_answer_too(method: str, name: str) -> None:
    if method in OF_EACH_FAMILY and name != "gias":
        pytest.skip("a test above has this pair")
    answered(method, name)


# --- uploads without a model -------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "name"), [("test-uploads-pictures", "map"), ("test-uploads-pictures", "analytic")])
def test_a16_an_attack_on_gradients_is_refused_where_pictures_are_uploaded(method: str, name: str) -> None:
    with pytest.raises(BadInput) as refused:
        list(attack(request(method, name), AttackResources()))
    assert str(refused.value) == (
        f"attack: {name}: reads gradients or updates, and the clients of test-uploads-pictures upload samples. "
        "Choose look."
    )


@pytest.mark.parametrize("method", ["scaffold", "ppsgd", "centaur"])
def test_a16_a_changed_model_is_refused_where_clients_keep_values_for_each_layer(method: str) -> None:
    refusal = problem(request(method, "imprint"))
    assert refusal and refusal.reason == (
        f"changes the layers of the model, and the clients of {method} keep values for each layer"
    )


@pytest.mark.slow
@pytest.mark.parametrize("view", ["server", "aggregate"])
def test_looking_shows_what_was_uploaded(view: str) -> None:
    events = list(attack(request("test-uploads-pictures", "look", view), AttackResources()))
    seen = next(event for event in events if isinstance(event, Seen))
    judged = next(event for event in events if isinstance(event, Judged))
    assert (seen.facts["kind"], judged.state) == ("samples", "converged")
    assert judged.numbers["psnr"][0] > 100
    assert seen.facts["noise-to-signal"] == 0 and seen.facts["numbers"] >= 784


@pytest.mark.slow
def test_a_recorded_upload_of_samples_is_attacked_too() -> None:
    events = list(attack(request("test-uploads-pictures", "look", pictures=()), AttackResources()))
    judged = next(event for event in events if isinstance(event, Judged))
    assert len(judged.numbers["psnr"]) == 2 and min(judged.numbers["psnr"]) > 100


@pytest.mark.parametrize("view", ["outsider", "client"])
def test_an_observer_of_models_cannot_look(view: str) -> None:
    refusal = problem(request("test-uploads-pictures", "look", view))
    assert refusal and refusal.reason == "needs the uploaded samples, and this observer receives only models"
