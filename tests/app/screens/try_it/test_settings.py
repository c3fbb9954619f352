"""The settings of Try: what a change of one side does to both, and what its address holds."""

from __future__ import annotations

from typing import Any

import pytest

from app.screens.try_it import requests as try_requests
from app.screens.try_it.settings import TrySettings
from app.session import services
from engine.examples.start import start_example

pytestmark = pytest.mark.usefixtures("home", "resting")
FEDCEO = {"method": "fedceo", "method.noise": 2.0}


@pytest.fixture(autouse=True)
def loaded() -> None:
    assert services.shared().ready(60)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The state of one visitor, without a page."""
    from app.screens.try_it.settings import STATE
    from app.session import session

    kept: dict[str, Any] = {}
    monkeypatch.setattr(session, "recall", lambda name, default=None: kept.get(name, default))
    monkeypatch.setattr(session, "remember", kept.__setitem__)
    return STATE


def read(settings: TrySettings) -> TrySettings:
    """The settings after they were shared as a link."""
    again, notes = TrySettings.read_link(settings.link(), TrySettings.default())
    assert not notes
    return again


def test_the_default_is_the_strongest_stop_of_start() -> None:
    from app.session.run_settings import spec_of

    example = start_example()
    assert example
    assert spec_of(TrySettings.default().run).id == example.stops[-1].run.id


def test_side_b_changes_only_what_it_names(state: Any) -> None:
    state.choose(b={"method.noise": 4.0})
    assert state.run_of("B") == {**state.run_of("A"), "method.noise": 4.0}
    state.change("A", {"rounds": 7})
    assert state.run_of("B")["rounds"] == 7 and state.run_of("B")["method.noise"] == 4.0
    state.change("A", {"method.noise": 1.0})
    assert state.run_of("B")["method.noise"] == 4.0


def test_side_b_keeps_its_protection_when_a_has_another_one(state: Any) -> None:
    state.choose(b=FEDCEO)
    state.change("A", {"method.noise": 0.1})
    assert (state.run_of("B")["method"], state.run_of("B")["method.noise"]) == ("fedceo", 2.0)
    try_requests.choose_protection("A", {"method": "fedavg"})
    assert state.run_of("A")["method"] == "fedavg" and "method.noise" not in state.run_of("A")
    assert (state.run_of("B")["method"], state.run_of("B")["method.noise"]) == ("fedceo", 2.0)


def test_b14_another_method_takes_no_field_of_the_one_before(state: Any) -> None:
    state.change("A", {"method.noise-split": "paper", "method.clip": 3.0})
    state.change("A", {"method": "ppsgd"})
    assert state.run_of("A")["method.noise-split"] == "server" and state.run_of("A")["method.clip"] == 1.0
    state.choose(b={"method": "udp-fedavg"})
    assert state.run_of("B")["method.noise-split"] == "paper"  # the default of the part, not that of A


def test_a_new_target_is_one_against_the_chosen_observer(state: Any) -> None:
    state.choose(eyes="outsider")
    state.change("A", {"target-epsilon": 8.0})
    assert state.run_of("A")["view"] == "outsider"
    state.choose(eyes="client")
    assert state.run_of("A")["view"] == "outsider"  # another observer makes no other run
    state.change("A", {"target-epsilon": 4.0})
    assert state.run_of("A")["view"] == "client"
    state.change("A", {"target-epsilon": None})
    assert state.run_of("A")["view"] is None


def test_a_link_holds_both_sides() -> None:
    settings = TrySettings.default().with_(b={**FEDCEO, "method.every": 3}, seeds=3, content="ordinary").settled()
    assert read(settings).other == settings.other
    assert read(settings) == settings
    assert "b" not in TrySettings.default().link()


def test_a_link_with_an_unknown_side_says_so() -> None:
    settings, notes = TrySettings.read_link({"b": "colour=blue"}, TrySettings.default())
    assert settings.other is None and any("colour" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "value"), [("seeds", "99"), ("whose", "../x"), ("eyes", "nobody-known"), ("pins", "")]
)
def test_a_wrong_value_is_one_note(name: str, value: str) -> None:
    settings, notes = TrySettings.read_link({name: value}, TrySettings.default())
    assert settings.run == TrySettings.default().run and len(notes) <= 1


def test_a_visitor_keeps_the_pinned_runs_on_links_without_any() -> None:
    now = TrySettings.default().with_(pins=("0123456789ab",))
    assert TrySettings.read_link({"rounds": "7"}, now)[0].pins == now.pins
    assert TrySettings.read_link({"pins": "abcdefabcdef"}, now)[0].pins == ("abcdefabcdef",)


def test_a_link_that_names_a_method_has_the_defaults_of_that_method() -> None:
    run = TrySettings.read_link({"method": "udp-fedavg", "rounds": "7"}, TrySettings.default())[0].run
    assert (run["method.noise-split"], run["method.noise"], run["rounds"]) == ("paper", 1.0, 7)
    run = TrySettings.read_link({"rounds": "7"}, TrySettings.default())[0].run
    assert (run["method.noise-split"], run["method.noise"]) == ("full-local", 2.0)


def test_a_server_that_cheats_has_attackers_that_read_its_model() -> None:
    settings, _ = TrySettings.read_link({"content": "cheat"}, TrySettings.default())
    assert "imprint" in settings.attacks and "map" not in settings.attacks


@pytest.mark.parametrize(("owner", "shown"), [(True, "own-0123456789abcdef-3"), (False, "portrait-0")])
def test_the_owner_of_a_picture_is_checked_at_each_use(
    state: Any, monkeypatch: pytest.MonkeyPatch, owner: bool, shown: str
) -> None:
    state.take_over(TrySettings.default().with_(whose="own-0123456789abcdef-3"))
    monkeypatch.setattr(services, "may_see_picture", lambda name: owner)
    assert state.current().whose == shown
    state.choose(seeds=2)
    assert state.current().whose == shown


def test_the_attacks_have_the_observer_and_the_round_of_the_settings() -> None:
    settings = TrySettings.default().with_(eyes="outsider", when="first")
    grid = settings.grid(settings.run)
    assert (grid.view, grid.round) == ("outsider", "first")
    assert TrySettings.default().grid(settings.run).round == "last"
