"""The id of a run follows from all of its fields, and from nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from engine.datasets import DATASETS
from engine.errors import BadInput, LeakLensError, NewerVersion, RunFailed
from engine.events import Finished
from engine.methods import METHODS
from engine.models import MODELS
from engine.part import TINY, Declared, Part, bounds, hyphened
from engine.partitions import PARTITIONS
from engine.registry import Shelf
from engine.specs.base import FORMAT
from engine.specs.run import RunSpec
from engine.training.forecast import forecast
from engine.training.loop import run
from engine.training.plan import make_plan
from tests.engine.makers import parts_with_one_change, tiny_spec

SHELVES: dict[str, Shelf[Any]] = {"method": METHODS, "dataset": DATASETS, "model": MODELS, "partition": PARTITIONS}
OTHER: dict[str, Any] = {  # for each field another legal value, in a spec with a target ε
    "method": "dp-fedavg", "dataset": "cifar10", "model": "lenet5", "partition": "dirichlet", "rounds": 31,
    "clients": 99, "sampled": 11, "sampling": "fixed", "epochs": 3, "batch": 33, "lr": 0.2, "momentum": 0.5,
    "weight_decay": 0.01, "seed": 1, "honest_share": 0.5, "delta": 1e-6, "target_epsilon": 9.0, "budget": 7.0,
    "view": "client",
}  # fmt: skip
BASE: dict[str, Any] = {"method": "udp-fedavg", "target_epsilon": 8.0, "view": "server"}
OPTIONAL = [hyphened(name) for name in RunSpec.later]
UDP, NOISE = "udp-fedavg", "udp-fedavg: noise: must be a number between 0 and 1000"


def again(spec: RunSpec) -> RunSpec:
    return RunSpec(**json.loads(json.dumps(spec.canonical(), allow_nan=False)))


def refused(**fields: Any) -> str:
    """The message with which a run with these fields is refused."""
    with pytest.raises(BadInput) as caught:
        make_plan(RunSpec(**fields))
    return str(caught.value)


# --- the id ------------------------------------------------------------------------------------------------


def test_every_field_changes_the_id_and_survives_json() -> None:
    assert set(OTHER) == set(RunSpec.model_fields)  # add each new field to OTHER
    specs = [RunSpec(**BASE), *(RunSpec(**{**BASE, name: value}) for name, value in OTHER.items())]
    assert len({spec.id for spec in specs}) == 1 + len(OTHER)
    for spec in specs:
        assert again(spec) == spec and again(spec).id == spec.id and again(spec).canonical() == spec.canonical()


PARTS = [pytest.param(place, part, id=part.name) for place, shelf in SHELVES.items() for part in shelf]


@pytest.mark.parametrize(("place", "part"), PARTS)
def test_every_field_of_every_part_changes_the_id_and_survives_json(place: str, part: type[Part]) -> None:
    specs = [tiny_spec(**{place: value}) for value in (part(), *parts_with_one_change(part()))]
    assert len({spec.id for spec in specs}) == 1 + len(part.model_fields)
    assert [again(spec).id for spec in specs] == [spec.id for spec in specs]


@pytest.mark.parametrize("place", SHELVES)
def test_every_part_of_a_shelf_changes_the_id(place: str) -> None:
    names = SHELVES[place].names()
    assert len({tiny_spec(**{place: name}).id for name in names}) == len(names)


def test_the_id_is_a_hash_of_the_canonical_json() -> None:
    spec = RunSpec()
    text = json.dumps(spec.canonical(), sort_keys=True, separators=(",", ":"))
    assert spec.id == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert spec.canonical()["format"] == 1
    assert RunSpec(method="udp-fedavg").canonical()["format"] == 2  # noise; 3 is of attacks
    assert spec.canonical()["method"] == METHODS.dump(METHODS["fedavg"]())  # never `{}`


def test_optional_fields_at_their_default_are_left_out() -> None:
    assert not set(OPTIONAL) & set(RunSpec().canonical())
    explicit = RunSpec(
        momentum=0.0, weight_decay=0.0, honest_share=1.0, delta=None, target_epsilon=None, view=None, budget=None
    )
    assert explicit.id == RunSpec().id
    full = RunSpec(**{**BASE, **{name.replace("-", "_"): OTHER[name.replace("-", "_")] for name in OPTIONAL}})
    assert set(OPTIONAL) <= set(full.canonical())


@pytest.mark.parametrize(
    ("auto", "explicit"),
    [
        ({}, {"sampling": "fixed"}),
        ({"method": "udp-fedavg"}, {"method": "udp-fedavg", "sampling": "poisson"}),
        ({"method": "dp-fedavg", "sampling": "auto"}, {"method": "dp-fedavg", "sampling": "poisson"}),
        ({"sampling": "all"}, {"sampling": "all", "sampled": 100}),
        ({"sampling": "all", "clients": 7}, {"sampling": "all", "clients": 7, "sampled": 7}),
    ],
)
def test_a_resolved_value_has_the_id_of_the_same_value_written_out(
    auto: dict[str, Any], explicit: dict[str, Any]
) -> None:
    assert RunSpec(**auto).id == RunSpec(**explicit).id
    assert RunSpec(**auto).canonical()["sampling"] != "auto"


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"weight_decay": 0.1}, {"weight-decay": 0.1}),
        ({"method": "udp_fedavg"}, {"method": "udp-fedavg"}),
        ({"method": {"name": "udp_fedavg", "noise_split": "full-local"}},
         {"method": {"name": UDP, "noise-split": "full-local"}}),
        ({"partition": {"name": "classes_per_client"}}, {"partition": "classes-per-client"}),
        ({"lr": 1}, {"lr": 1.0}),
        ({"method": {"name": "udp-fedavg", "noise": 2}}, {"method": {"name": "udp-fedavg", "noise": 2.0}}),
        ({"method": {"name": "udp-fedavg", "noise": -0.0}}, {"method": {"name": "udp-fedavg", "noise": 0.0}}),
        ({"momentum": -0.0}, {}),
        ({"method": "fedavg"}, {"method": METHODS["fedavg"]()}),
    ],
)  # fmt: skip
def test_two_spellings_have_one_id(fields: dict[str, Any], same: dict[str, Any]) -> None:
    assert RunSpec(**fields).id == RunSpec(**same).id


def test_a_view_without_a_target_or_budget_is_ignored() -> None:
    assert RunSpec(method="udp-fedavg", view="server").id == RunSpec(method="udp-fedavg").id
    assert RunSpec(method="fedavg", view="client").view is None


def test_a_target_decides_the_noise_and_replaces_the_given_one() -> None:
    ids = {RunSpec(**{**BASE, "method": {"name": "udp-fedavg", "noise": noise}}).id for noise in (0.0, 1.0, 3.0)}
    assert len(ids) == 1
    budgets = {
        RunSpec(method={"name": "udp-fedavg", "noise": noise}, budget=8.0, view="server").id for noise in (1.0, 3.0)
    }
    assert len(budgets) == 2
    clipped = RunSpec(**{**BASE, "method": {"name": "udp-fedavg", "clip": 3.0}})
    assert clipped.id not in ids


# --- any valid spec survives JSON ---------------------------------------------------------------------------


def legal(field: FieldInfo) -> st.SearchStrategy[Any]:
    """Any value that the field allows."""
    if get_origin(field.annotation) is Literal:
        return st.sampled_from(get_args(field.annotation))
    limits = bounds(field)
    if field.annotation is int:
        return st.integers(int(limits["ge"]), int(limits["le"]))
    if field.annotation is float:
        least, most = float(limits.get("ge", 0.0)), limits.get("le", limits.get("lt"))
        above = st.floats(max(TINY, least), most, allow_nan=False, allow_infinity=False, exclude_max="lt" in limits)
        return above if "gt" in limits else st.just(least) | above
    assert field.annotation is bool, field
    return st.booleans()


def any_part(shelf: Shelf[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        [st.builds(part, **{name: legal(field) for name, field in part.model_fields.items()}) for part in shelf]
    )


numbers = {
    name: legal(RunSpec.model_fields[name])
    for name in ("rounds", "epochs", "batch", "lr", "momentum", "weight_decay", "seed", "honest_share")
}
specs = st.fixed_dictionaries(
    {},
    optional={
        **{name: any_part(shelf) for name, shelf in SHELVES.items()},
        **numbers,
        "delta": st.none() | st.floats(1e-12, 0.5),
    },
)
counts = st.integers(1, 10_000).flatmap(lambda clients: st.tuples(st.just(clients), st.integers(1, clients)))


@settings(max_examples=60)
@given(specs, counts, st.sampled_from(["poisson", "fixed", "auto"]))
def test_any_valid_spec_survives_json(fields: dict[str, Any], count: tuple[int, int], sampling: str) -> None:
    clients, sampled = count
    spec = RunSpec(**fields, clients=clients, sampled=sampled, sampling=sampling)
    assert again(spec) == spec and again(spec).id == spec.id
    assert all(getattr(spec, name) == value for name, value in fields.items())
    assert spec.with_(seed=spec.seed).id == spec.id


# --- invalid specs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": {"name": "udp-fedavg", "noise": -1}}, f"{NOISE}, got -1"),
        ({"method": {"name": "udp-fedavg", "noise": math.nan}}, f"{NOISE}, got nan"),
        ({"method": {"name": "dp-fedavg", "clip": math.inf}},
         "dp-fedavg: clip: must be a number above 0 and at most 1000, got inf"),
        ({"method": {"name": "udp-fedavg", "noise": True}}, f"{NOISE}, got true"),
        ({"method": {"name": "fedsgd", "batches": "two"}}, "fedsgd: batches: must be one of every, one, got two"),
        ({"method": {"name": "fedavg", "noise": 1.0}},
         "fedavg: noise: no such parameter. Known here: server-step, weighting."),
        ({"model": {"name": "mlp", "bias": 1}}, "mlp: bias: must be true or false, got 1"),
        (
            {"dataset": "mnits"},
            "dataset: no mnits. Did you mean mnist? "
            "Known here: cifar10, emnist, fashion-mnist, mnist, movie-reviews, sentiment140.",
        ),
        ({"method": None}, "method: must be a name, or an object with a name, got nothing"),
        ({"rounds": -1}, "run: rounds: must be a whole number between 0 and 10000, got -1"),
        ({"rounds": 3.0}, "run: rounds: must be a whole number between 0 and 10000, got 3.0"),
        ({"rounds": True}, "run: rounds: must be a whole number between 0 and 10000, got true"),
        ({"lr": math.nan}, "run: lr: must be a number above 0 and at most 100, got nan"),
        ({"lr": -math.inf}, "run: lr: must be a number above 0 and at most 100, got -inf"),
        ({"lr": 1e-320}, "run: lr: must be at least 1e-12, got 1e-320"),
        ({"lr": 1e300}, "run: lr: must be a number above 0 and at most 100, got 1e+300"),
        ({"momentum": 1e-320}, "run: momentum: must be 0 or at least 1e-12, got 1e-320"),
        ({"lr": "0.1"}, 'run: lr: must be a number above 0 and at most 100, got "0.1"'),
        ({"clients": 0}, "run: clients: must be a whole number between 1 and 10000, got 0"),
        ({"sampled": 101}, "run: sampled: must be at most the 100 clients there are, got 101. Take fewer."),
        ({"sampling": "all", "sampled": 10},
         "run: sampled: must be all 100 clients where sampling is all, got 10. Leave it out."),
        ({"sampling": "some"}, "run: sampling: must be one of poisson, fixed, all, auto, got some"),
        ({"view": "everyone"}, "run: view: must be one of server, aggregate, outsider, client, got everyone"),
        ({"seed": 2**54}, "run: seed: must be a whole number between 0 and 9007199254740992, got 18014398509481984"),
        ({"delta": 0}, "run: delta: must be a number at least 1e-100 and below 1, got 0"),
        ({"delta": 1e-320}, "run: delta: must be a number at least 1e-100 and below 1, got 1e-320"),
        ({"weight_decay": 0.1, "weight-decay": 0.1}, "run: weight-decay: is given twice. Leave one of them out."),
        ({"method": {"name": UDP, "noise-split": "paper", "noise_split": "paper"}},
         "udp-fedavg: noise-split: is given twice. Leave one of them out."),
        ({"method": "\udcff\x1b"}, "method: no \\udcff\\x1b. Known here: " + ", ".join(METHODS.names()) + "."),
        ({"format": "1"}, 'run: format: must be a whole number at least 1, got "1"'),
        ({"format": True}, "run: format: must be a whole number at least 1, got true"),
        ({"format": 1.0}, "run: format: must be a whole number at least 1, got 1.0"),
        ({"format": 0}, "run: format: must be a whole number at least 1, got 0"),
        ({"format": None}, "run: format: must be a whole number at least 1, got nothing"),
        ({"delta": 0.01}, "run: delta: must be below 1/n = 0.01 for 100 clients, got 0.01. "
                          "A larger δ would allow a method to publish one of them."),
        ({"target_epsilon": 8.0, "method": "udp-fedavg"}, "run: view: is missing; every view has its own ε. "
                                                          "Name who observes: server, aggregate, outsider or client."),
        ({"budget": 8.0, "method": "udp-fedavg"}, "run: view: is missing; every view has its own ε. "
                                                  "Name who observes: server, aggregate, outsider or client."),
        ({"target_epsilon": 8.0, "view": "server"}, "fedavg: has no noise, so a target ε or a budget does not apply. "
                                                    "Choose a method with noise, such as udp-fedavg."),
        ({"target_epsilon": 0, "view": "server"},
         "run: target-epsilon: must be a number above 0 and at most 1000000, got 0"),
    ],
)  # fmt: skip
def test_an_invalid_spec_is_refused_with_one_clear_message(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LeakLensError) as caught:
        make_plan(RunSpec(**fields))
    text = str(caught.value)
    assert caught.value.exit_code == 2 and "\n" not in text and "pydantic" not in text
    assert text == message


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    assert refused(planet="Mars").startswith(
        "run: planet: no such parameter. Known here: method, dataset, model, partition, rounds,"
    )


def test_a_newer_format_is_refused_before_its_fields_are_checked() -> None:
    with pytest.raises(NewerVersion) as caught:
        RunSpec(format=FORMAT + 1, planet="Mars")
    assert str(caught.value) == (
        f"run: the spec has format {FORMAT + 1}, and this LeakLens reads formats up to {FORMAT}. "
        "Update LeakLens to open it."
    )


# --- numbers out of range ---------------------------------------------------------------------------------


DECLARED: list[type[Declared]] = [RunSpec, *(part for shelf in SHELVES.values() for part in shelf)]
NUMBERS = [
    pytest.param(declared, name, id=f"{declared.label()} {hyphened(name)}")
    for declared in DECLARED
    for name, field in declared.model_fields.items()
    if float in (field.annotation, *get_args(field.annotation))
]


@pytest.mark.parametrize("value", [5e-324, 1e-320, -1e-320, 1e300, -1e300, 1.7e308])
@pytest.mark.parametrize(("declared", "name"), NUMBERS)
def test_no_field_takes_a_number_out_of_range(declared: type[Declared], name: str, value: float) -> None:
    with pytest.raises(
        BadInput, match=f"^{declared.label()}: {hyphened(name)}: must be .* got {value!r}".replace("+", ".")
    ):
        declared(**{name: value})
    limits = bounds(declared.model_fields[name])
    assert {"ge", "gt"} & set(limits) and {"le", "lt"} & set(limits)


TINIEST = {"lr": 1e-12, "momentum": 1e-12, "weight_decay": 1e-12, "delta": 1e-100, "honest_share": 1e-12}
LEAST = {"noise": 1e-12, "clip": 1e-12, "server-step": 1e-12}
MOST = {"noise": 1000.0, "clip": 1000.0, "server-step": 10.0}


@pytest.mark.slow
@pytest.mark.parametrize("more", [TINIEST, {"lr": 100.0, "momentum": 1 - 1e-12, "weight_decay": 1.0}, {}])
@pytest.mark.parametrize("method", METHODS.names())
def test_a_run_at_the_limits_finishes_or_fails_with_a_reason(method: str, more: dict[str, Any]) -> None:
    if method in ("fedsgd", "scaffold"):
        more = {name: value for name, value in more.items() if name not in ("momentum", "weight_decay")}
    for ends in (LEAST, MOST):
        limits = {name: value for name, value in ends.items() if name.replace("-", "_") in METHODS[method].model_fields}
        least = METHODS.dump(METHODS[method]().trial())
        spec = tiny_spec(method={**least, **limits}, model={"name": "mlp", "dropout": 1 - 1e-12}, **more)
        forecast(spec)
        try:
            assert isinstance(list(run(spec))[-1], Finished)
        except RunFailed as failed:
            assert "finite numbers" in failed.message and failed.remedy


def test_a_client_without_pictures_is_refused() -> None:
    text = refused(clients=500, sampled=5, partition={"name": "dirichlet", "alpha": 0.01})
    assert text.startswith("dirichlet: client ") and "would get no pictures: every client must get at least one" in text
    assert "500 clients" in text and "alpha 0.01" in text and "Raise alpha" in text


def test_a_spec_is_frozen() -> None:
    with pytest.raises(Exception, match="frozen"):
        RunSpec().rounds = 3  # type: ignore[misc]
