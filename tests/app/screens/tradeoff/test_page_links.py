"""From the Trade-off screen to others and back: each takes what it was asked with, whatever was typed in that pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import links, services, session
from app.texts import sweep as sweep_texts
from engine.specs.run import RunSpec
from tests.app.conftest import Screen
from tests.app.makers import Asker
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import clicked, come_to, link, tradeoff_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
VISITED = {"seen:tradeoff": {"noises": "1"}, "seen:leak": {"many": "1"}}  # both were there before


def opened_in_lab(page: AppTest) -> tuple[str, ...]:
    return tuple(page.session_state["ids"]["run"])


def in_lab(page: AppTest) -> AppTest:
    """The page under test stays where it was: it is told that the browser has gone on."""
    return open_screen(clicked(page, "tradeoff-lab"), "lab")


# --- there and back ----------------------------------------------------------------------------------------


def test_what_was_changed_in_the_lab_comes_back(small: TradeoffSettings) -> None:
    page = in_lab(visit(small))
    page.number_input(key="w:epochs").set_value(3).run()
    clicked(page, "to-tradeoff")
    found = tradeoff_of(page)
    assert (found.run["epochs"], found.run["rounds"], found.run["clients"]) == (3, 2, 20)
    assert (found.methods, found.noises, found.seeds) == (small.methods, small.noises, small.seeds)


def test_what_is_typed_when_the_lab_is_left_comes_along(screen: Screen) -> None:
    page = screen("lab", **VISITED)
    page.number_input(key="w:rounds").set_value(7)
    clicked(page, "to-tradeoff")  # both reach the server at once
    assert tradeoff_of(page).run["rounds"] == 7 and link(page)["rounds"] == "7"


def test_what_is_typed_when_the_lab_is_left_keeps_no_link_from_the_leak_screen(screen: Screen) -> None:
    page = screen("lab", **VISITED)
    page.number_input(key="w:rounds").set_value(7)
    clicked(page, "to-leak")
    first = services.first_example()
    assert first and page.session_state["leak"].run["clients"] == RunSpec(**first.spec).clients
    assert "run" in page.session_state["leak"].against


def test_what_is_typed_when_the_trade_off_is_left_comes_along(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-rounds").set_value(7)
    clicked(page, "tradeoff-lab")
    assert page.session_state["settings"]["rounds"] == 7


def test_the_lab_is_given_a_method_that_is_compared(small: TradeoffSettings) -> None:
    mine = replace(small, methods=("fedceo", "ppsgd"), of={"fedceo": {"every": 3}})
    page = in_lab(visit(mine))
    settings = page.session_state["settings"]
    assert (settings["method"], settings["method.every"]) == ("fedceo", 3)
    clicked(page, "to-tradeoff")
    assert sweep_texts.PROMISE in text(page)
    found = tradeoff_of(page)
    assert found.methods == mine.methods and tradeoff_settings.in_force(found, "fedceo")["every"] == 3


def test_the_method_of_a_run_from_the_lab_is_compared_too(small: TradeoffSettings) -> None:
    mine = replace(small, methods=("ppsgd",))
    spec = RunSpec(method="fedceo", rounds=3, sampling="poisson")
    assert tradeoff_settings.read_link(links.tradeoff_link_of_run(spec.canonical()), mine)[0].methods == (
        "ppsgd",
        "fedceo",
    )
    both = replace(small, methods=("ppsgd", "dp-fedavg"))
    spec = RunSpec(method="dp-fedavg", rounds=3)
    assert tradeoff_settings.read_link(links.tradeoff_link_of_run(spec.canonical()), both)[0].methods == both.methods


# --- stored points -----------------------------------------------------------------------------------------


def picked(page: AppTest, name: str = "fedceo", noise: float = 1.0) -> AppTest:
    page.session_state["tradeoff-picked"] = (name, noise)
    return page.run()


def test_a_stored_point_is_run_live_on_its_way_to_the_lab() -> None:
    page = picked(visit())
    assert page.button(key="tradeoff-open").label == sweep_texts.OPEN_LIVE
    clicked(page, "tradeoff-open")
    rows = {row.id: row for row in services.store().runs()}
    assert set(opened_in_lab(page)) == set(rows) and len(rows) == 3
    assert {(row.spec["method"]["name"], row.status) for row in rows.values()} == {("fedceo", "queued")}
    assert "not on this machine" not in text(page)


def test_where_a_visitor_may_not_run_it_the_sentence_stands_there(monkeypatch: pytest.MonkeyPatch, ask: Asker) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    most = class_limits.caps().runs or 0
    for seed in range(most):
        ask("queued", seed=seed, visitor="me")
    page = clicked(picked(visit()), "tradeoff-open")
    assert f"at most {most} runs waiting or running" in text(page)
    assert len(services.store().runs()) == most and sweep_texts.PROMISE in text(page)


def test_what_was_stopped_on_this_machine_and_ships_is_run_live_as_well() -> None:
    page = visit()
    for point in tradeoff_settings.laid_out(tradeoff_of(page)):
        if (point.method, point.noise) == ("fedceo", 1.0):
            services.store().submit(point.id, point.spec.canonical())
            services.store().cancel(point.id)
    clicked(picked(page), "tradeoff-open")
    assert {services.store().status(run) for run in opened_in_lab(page)} == {"queued"}


def test_a_run_of_this_machine_is_opened_as_it_is(small: TradeoffSettings) -> None:
    points = tradeoff_settings.laid_out(small)
    services.store().submit_all({point.id: point.spec.canonical() for point in points})
    for point in points:
        come_to(point, 0.5)
    page = picked(visit(small), "ppsgd", 2.0)
    assert page.button(key="tradeoff-open").label == sweep_texts.OPEN
    clicked(page, "tradeoff-open")
    assert len(opened_in_lab(page)) == 2 and {row.status for row in services.store().runs()} == {"finished"}


# --- a paper's table ---------------------------------------------------------------------------------------


def test_each_kind_of_question_is_found_as_it_was_left(small: TradeoffSettings) -> None:
    page = visit(replace(small, table="1/cifar10/paper/written", eyes="client"))
    kind = "tradeoff-kind"
    page.segmented_control(key=kind).set_value(sweep_texts.OF_OWN).run()
    assert (tradeoff_of(page).table, tradeoff_of(page).eyes) == ("", "outsider")
    page.segmented_control(key=kind).set_value(sweep_texts.OF_PAPER).run()
    assert (tradeoff_of(page).table, tradeoff_of(page).eyes) == ("1/cifar10/paper/written", "client")


def test_only_another_reading_has_other_eyes(small: TradeoffSettings) -> None:
    page = visit(replace(small, table="1/cifar10/quick/written", eyes="client"))
    page.selectbox(key="tradeoff-paper-row").select("emnist").run()
    assert tradeoff_of(page).eyes == "client"
    page.selectbox(key="tradeoff-paper-reading").select("released").run()
    assert tradeoff_of(page).eyes == "server"
    page.segmented_control(key="tradeoff-kind").set_value(sweep_texts.OF_OWN).run()
    assert tradeoff_of(page).eyes == "outsider"
