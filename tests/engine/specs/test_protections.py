"""What pickers offer comes from the shelf of methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from app.session import run_settings
from engine import registry
from engine.capabilities import Strength, Suggestion
from engine.methods import METHODS, Method
from engine.methods.user_level.base import FAMILY, UserLevel
from engine.part import Problem
from engine.specs import protections
from engine.specs.run import RunSpec
from engine.training.forecast import forecast


class NewMethod(UserLevel):
    """Each client adds noise in a new way."""

    strength: ClassVar[Strength | None] = Strength("noise", (0.0, 1.0, 2.0, 4.0), "coins")
    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("Noise of a new kind", 6),)

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        del spec
        return (Problem("new-method: fits no data", "Choose another method"),)


@pytest.fixture
def arrived() -> Iterator[None]:
    """A method that arrives later."""
    registry.import_own_parts()
    before = registry.snapshot()
    METHODS.add("new-method", title="New Method", source="tests")(NewMethod)
    yield
    registry.restore(before)


def test_the_suggestions_are_those_of_the_methods() -> None:
    assert [protection.title for protection in protections.suggested()] == [
        "None", "Noise by each phone", "Noise shared by the crowd", "Noise on each step", "FedCEO",
    ]  # fmt: skip


@pytest.mark.usefixtures("arrived")
def test_a_method_that_arrives_later_is_offered_with_all_that_it_declares() -> None:
    suggestion = protections.suggested()[-1]
    assert (suggestion.title, suggestion.sentence) == ("Noise of a new kind", "Each client adds noise in a new way.")
    (row,) = [row for row in protections.by_family()[FAMILY] if row.method == "new-method"]
    assert row.title == "New Method" and row.strength == Strength("noise", (0.0, 1.0, 2.0, 4.0), "coins")
    assert {"New Method", "Noise of a new kind"} <= {each.title for each in protections.every()}
    spec = RunSpec(**run_settings.nested(row.applied_to(run_settings.flat(RunSpec().canonical()))))
    assert [problem.reason for problem in forecast(spec, timed=False).problems if problem.fatal] == [
        "new-method: fits no data"
    ]


def test_every_protection_makes_a_run_and_is_recognised_in_it() -> None:
    settings = run_settings.completed({"method": "fedavg"})
    titles = [protection.title for protection in protections.every()]
    assert len(set(titles)) == len(titles) and {method.title for method in METHODS} <= set(titles)
    for protection in protections.every():
        run = run_settings.completed(protection.applied_to(settings))
        described = protections.described(run)
        assert run_settings.spec_of(run).method.name == described.method == protection.method
        assert described.fields == protection.fields


def test_a_suggestion_of_a_base_class_is_not_one_of_its_subclass() -> None:
    inherited = [method for method in METHODS if method.suggestions and "suggestions" not in vars(method)]
    assert not inherited
    methods = {protection.method for protection in protections.suggested()}
    assert methods == {method.name for method in METHODS if "suggestions" in vars(method)}


def test_no_field_is_carried_over_to_another_method() -> None:
    run = run_settings.completed({"method": "udp-fedavg", "method.noise-split": "paper", "target-epsilon": 3.0})
    titled = {protection.title: protection for protection in protections.every()}
    assert titled["CENTAUR"].applied_to(run)["method.noise-split"] == "server"
    assert titled["FedCEO"].applied_to(run)["target-epsilon"] == 3.0
    assert titled["None"].applied_to(run)["target-epsilon"] is None  # nothing could keep it
    assert "method.clip" not in titled["SCAFFOLD"].applied_to(run)


@pytest.mark.parametrize("method", list(METHODS), ids=lambda method: method.name)
def test_a_suggestion_names_fields_that_its_method_has(method: type[Method]) -> None:
    for suggestion in method.suggestions:
        assert method(**suggestion.fields)
