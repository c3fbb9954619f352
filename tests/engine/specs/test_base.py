"""A spec keeps the result format that it was written with, so its id stays and no one computes it with other code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from engine.attacks.pictures.analytic import Analytic
from engine.errors import BadInput, NewerVersion
from engine.leakage.compatibility import problem, refuse
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.methods import METHODS
from engine.methods.averaging.fedavg import FedAvg
from engine.specs import base
from engine.specs.attack import AttackSpec
from engine.specs.run import SHELVES, RunSpec
from engine.training.forecast import forecast
from engine.training.loop import run


class Changed(FedAvg):
    """A method whose results changed for one of its settings."""

    style: Literal["old", "new"] = "new"

    def result_format(self, spec: Any) -> int:
        return 2 if self.style == "new" else 1


@pytest.fixture(autouse=True)
def newer_format(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(base, "FORMAT", 2)
    METHODS.add("changed", title="a test method", source="tests")(Changed)
    yield
    del METHODS._parts["changed"]


def spec(style: str = "new", **fields: Any) -> RunSpec:
    return RunSpec(method={"name": "changed", "style": style}, rounds=1, **fields)


def test_only_specs_whose_results_changed_have_the_new_format() -> None:
    assert (spec().format, spec("old").format, RunSpec().format) == (2, 1, 1)
    assert RunSpec().canonical()["format"] == 1


def test_a_spec_of_an_old_format_keeps_its_id() -> None:
    old = spec(format=1)
    assert old.canonical() == {**spec().canonical(), "format": 1}
    assert old.id != spec().id
    assert RunSpec(**old.canonical()).id == old.id


def test_a_change_makes_it_a_spec_of_today() -> None:
    assert spec(format=1).with_(seed=3).id == spec(seed=3).id


def test_a_newer_format_than_the_parts_need_is_the_one_they_need() -> None:
    assert RunSpec(format=2).id == RunSpec().id


REFUSAL = "run: format: must be 2 to be replayed, got 1"


def test_an_old_spec_is_not_computed_again() -> None:
    with pytest.raises(BadInput) as refused:
        list(run(spec(format=1)))
    assert str(refused.value) == f"{REFUSAL}. Remove `format` to run it as this version does."
    (first, *_) = forecast(spec(format=1)).problems
    assert first.reason == REFUSAL and first.fatal


def test_an_attack_on_an_old_run_is_refused_and_keeps_its_id() -> None:
    old = AttackSpec(run=spec(format=1).canonical(), attack="analytic", pictures=("test-0",))
    assert old.run.id == spec(format=1).id
    reason = problem(old)
    assert reason and reason.reason == REFUSAL


def test_an_attack_of_an_old_format_is_refused_on_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analytic, "result_format", lambda part, spec: 2)
    old = AttackSpec(run=spec("old"), attack="analytic", pictures=("test-0",), format=1)
    assert old.canonical()["format"] == 1 and AttackSpec(run=spec("old"), attack="analytic").format == 2
    reason = problem(old)
    assert reason and reason.reason == "attack: format: must be 2 to be replayed, got 1"
    with pytest.raises(BadInput, match="attack: format: must be 2 to be replayed, got 1"):
        refuse(old, AttackResources())
    with pytest.raises(BadInput, match="Remove `format` to attack as this version does"):
        list(attack(old, AttackResources()))


@pytest.mark.parametrize("kind", [RunSpec, AttackSpec])
def test_a_format_from_a_newer_version_is_refused(kind: type[base.Spec]) -> None:
    with pytest.raises(NewerVersion, match="the spec has format 3, and this LeakLens reads formats up to 2"):
        kind(format=3, run={}, attack="map")


def test_no_part_has_a_newer_format_than_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    del METHODS._parts["changed"]
    try:
        for part, shelf in SHELVES.items():
            for kind in shelf:
                run_spec = RunSpec() if part == "attack" else RunSpec(**{part: kind()})
                assert kind().result_format(run_spec) <= base.FORMAT
    finally:
        METHODS._parts["changed"] = Changed


@pytest.mark.parametrize("value", [5, None, "e812b775a3bd", [], [("method", "fedavg")], True, 1.5, b"{}", object()])
def test_c02_an_attack_on_anything_but_a_run_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match=r"attack: run: must be a run, as an object"):
        AttackSpec(run=value)
