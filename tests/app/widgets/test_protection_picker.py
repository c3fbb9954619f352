"""The drawer shows what a method declares, also of one that arrives later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from streamlit.testing.v1 import AppTest

from app.session import services
from app.texts import protections as texts
from engine import registry
from engine.capabilities import Suggestion
from engine.methods import METHODS
from engine.methods.averaging.base import Averaging
from engine.part import Problem
from engine.records import Guarantee, World
from tests.app.conftest import PATIENCE_S
from tests.app.reading import text

pytestmark = pytest.mark.usefixtures("resting")
PAGE = """
import streamlit as st
from app.session import run_settings
from app.widgets import protection_picker
run = run_settings.completed({"method": "udp-fedavg", "method.noise-split": "full-local"})
choose = lambda fields: st.session_state.__setitem__("choice", dict(fields))
protection_picker.show(run, st.session_state.get("view", "server"), choose, "picker")
"""


class Arrived(Averaging):
    """Clients send drawings in place of what they learnt."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("Send drawings", 6),)

    def problems(self, spec: Any) -> tuple[Problem, ...]:
        del spec
        return (Problem("send-drawings: must have pencils", "Buy some"),)

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "drawings leave as they are")


class Hidden(Averaging):
    """The server does not see what clients send."""

    suggestions: ClassVar[tuple[Suggestion, ...]] = (Suggestion("Hide drawings", 6),)

    def guarantee(self, world: World) -> Guarantee:
        del world
        return Guarantee("none", "drawings are hidden", {"server": "the server sees no drawings"})


@pytest.fixture
def absent() -> Iterator[None]:
    registry.import_own_parts()
    before = registry.snapshot()
    METHODS.add("no-drawings", title="Hidden drawings", source="tests")(Hidden)
    yield
    registry.restore(before)


@pytest.fixture
def arrived() -> Iterator[None]:
    registry.import_own_parts()
    before = registry.snapshot()
    METHODS.add("send-drawings", title="Drawings", source="tests")(Arrived)
    yield
    registry.restore(before)


def drawer(view: str = "server") -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_string(PAGE, default_timeout=PATIENCE_S)
    page.session_state["view"] = view
    page.run().button(key="picker").click().run()
    assert not page.exception
    return page


@pytest.mark.usefixtures("arrived")
def test_a_method_that_arrives_later_is_there_with_its_sentence_and_its_reason() -> None:
    page = drawer()
    assert page.button(key="picker-suggested-send-drawings").disabled
    assert "Clients send drawings in place of what they learnt." in text(page)
    assert "Drawings. Does not fit: send-drawings: must have pencils. Buy some." in text(page)
    assert any(option.startswith("Send drawings (Drawings) - ") for option in page.selectbox(key="picker-find").options)


def test_the_kind_of_promise_is_that_of_the_observer() -> None:
    server, outsider = (text(drawer(view)) for view in ("server", "outsider"))
    assert "UDP-FedAvg. Proven against the server, per client." in server
    assert "Proven against an outsider, per client." in outsider
    assert texts.NO_PROMISE in server and "Proven against the server" not in outsider


@pytest.mark.parametrize(("view", "problem"), [("server", "the server sees no drawings"), ("outsider", "")])
def test_a_method_without_an_answer_for_the_observer_does_not_fit(view: str, problem: str, absent: None) -> None:
    page = drawer(view)
    assert page.button(key="picker-suggested-no-drawings").disabled == bool(problem)
    assert (f"Does not fit: {problem}." in text(page)) == bool(problem)


@pytest.mark.slow
def test_a_choice_has_every_field_that_names_it() -> None:
    page = drawer()
    page.button(key="picker-suggested-udp-fedavg-paper").click().run()
    assert page.session_state["choice"] == {"method": "udp-fedavg", "method.noise-split": "paper"}
    page = drawer()
    page.selectbox(key="picker-find").set_value("CENTAUR").run()
    assert page.session_state["choice"] == {"method": "centaur", "method.noise-split": "server"}
    page = drawer()
    page.button(key="picker-suggested-fedavg").click().run()
    assert page.session_state["choice"] == {"method": "fedavg", "target-epsilon": None, "budget": None}


@pytest.mark.parametrize(
    ("status", "unit", "proven", "sentence"),
    [
        ("formal", "user", {"server", "outsider"}, "Proven against the server, per client."),
        ("formal-other-view", "user", {"outsider"}, "Proven per client, but not against the server."),
        ("none", None, set(), "No promise."),
        ("formal", "record", set(), "No promise."),
        ("empirical", None, set(), "Not proven."),
        ("claimed-refuted", "user", {"server"}, "Claim does not hold."),
    ],
)
def test_a_kind_of_promise_in_words(status: str, unit: str | None, proven: set[str], sentence: str) -> None:
    assert texts.kind(status, unit, proven, "server") == sentence
