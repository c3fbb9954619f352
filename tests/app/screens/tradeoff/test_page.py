"""The Trade-off screen shows what the store holds, asks what its form says, and explains what cannot be asked."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import points as tradeoff_points
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import services, session
from app.texts import numbers, product, states
from app.texts import sweep as sweep_texts
from engine.events import Event
from engine.examples import sweep
from engine.jobs.store import Store
from engine.specs.run import RunSpec
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import (
    breaks,
    captions,
    charts,
    clicked,
    come_to,
    keys,
    link,
    standing,
    tradeoff_of,
    visit,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


# --- a first visit -----------------------------------------------------------------------------------------


def test_a_first_visit_sees_a_finished_frontier() -> None:
    page = visit()
    ship = sweep.frontier()
    assert ship is not None and services.store().runs() == []
    assert states.STORED.format(made=ship.made) in captions(page) and "tradeoff-live" in keys(page)
    noise, price = charts(page)
    assert "UDP-FedAvg: noise 0.25" in noise and "ε" in price and "seen by an outsider" in price
    assert "At noise 1, " in text(page) and page.button(key="tradeoff-run").disabled
    assert tradeoff_settings.read_link(link(page), tradeoff_settings.usual()) == (tradeoff_settings.usual(), [])


def test_it_is_there_before_the_shelves_are(monkeypatch: pytest.MonkeyPatch) -> None:
    services.shared()
    monkeypatch.setattr(services.Services, "ready", lambda kitchen, wait=0.0: False)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    open_screen(page, "tradeoff")
    page.run()
    assert not page.exception and product.GETTING_READY in text(page)
    assert len(charts(page)) == 2 and "At noise 1, " in text(page)


def test_run_it_live_asks_for_everything_that_is_only_stored() -> None:
    page = clicked(visit(), "tradeoff-live")
    assert len(services.store().runs()) == len(tradeoff_settings.laid_out(tradeoff_settings.usual()))
    assert "0 of 153 runs" in page.get("progress")[0].proto.text


def test_of_a_question_that_is_partly_stored_only_the_rest_is_asked() -> None:
    page = visit(replace(tradeoff_settings.usual(), noises="0.25, 0.5, 1, 2, 4"))
    many = len(tradeoff_settings.laid_out(tradeoff_of(page))) - 153
    assert "153 of them known already" in captions(page)
    assert page.button(key="tradeoff-run").label == f"Start the other {many} runs"
    clicked(page, "tradeoff-run")
    assert len(services.store().runs()) == many


# --- asking ------------------------------------------------------------------------------------------------


def test_before_the_click_stands_what_it_costs_and_what_it_buys(small: TradeoffSettings) -> None:
    page = visit(small)
    assert "10 runs. Expected time here: " in captions(page)
    assert sweep_texts.WAITING in text(page) and "known before anything runs" in text(page)
    spec = next(one.spec for one in tradeoff_settings.laid_out(small) if one.noise == 2.0)
    answer = next(one for one in services.forecast_of(spec.canonical()).answers if one.view == "outsider")
    assert f"ε {numbers.epsilon(answer.epsilon)}" in text(page)


def test_a_click_asks_for_every_point_the_first_seed_first(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    rows = services.store().runs()[::-1]
    assert [row.id for row in rows] == [one.id for one in tradeoff_settings.laid_out(small)]
    assert len({row.options["visitor"] for row in rows}) == 1  # nobody but this page has asked
    assert page.button(key="tradeoff-run").disabled and "tradeoff-cancel" in keys(page)


def test_points_appear_as_they_end_and_what_is_known_stays_after_a_cancel(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    points = tradeoff_settings.laid_out(small)
    come_to(points[0], 0.61)
    page.run()
    assert "1 of 10 runs" in page.get("progress")[0].proto.text
    assert "UDP-FedAvg: noise 0.5 61.0 %" in charts(page)[0]
    clicked(page, "tradeoff-cancel")
    assert standing(small) == ["finished", *["cancelled"] * 9]
    assert sweep_texts.STOPPED.format(known=1, all=10) in text(page) and "61.0 %" in charts(page)[0]
    clicked(page, "tradeoff-go-on")
    assert standing(small) == ["finished", *["queued"] * 9]
    assert {row.attempt for row in services.store().runs()} == {1, 2}


def test_a_link_brings_everything_back(small: TradeoffSettings) -> None:
    for point in tradeoff_settings.laid_out(small)[:5]:
        services.store().submit(point.id, point.spec.canonical())
        come_to(point, 0.5 if point.noise else 0.9)
    page = visit(small)
    assert "5 of them known already" in captions(page) and page.button(key="tradeoff-run").label.startswith(
        "Start the other 5"
    )
    assert "FedAvg: no noise 90.0 %" in charts(page)[0]


def test_what_others_watch_goes_on(small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    page = clicked(visit(small), "tradeoff-run")
    first = tradeoff_settings.laid_out(small)[0].id
    monkeypatch.setattr(services, "others_watching", lambda run: int(run == first))
    clicked(page, "tradeoff-cancel")
    assert standing(small) == ["queued", *["cancelled"] * 9]
    assert "Somebody else asked for 1 of these runs or watches it: it goes on." in text(page)


def test_a_failure_has_its_reason_and_a_way_to_try_again(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    points = tradeoff_settings.laid_out(small)
    for point in points[1:]:
        come_to(point, 0.5)
    breaks(points[0], "the worker <b>stopped</b>", "Choose a smaller model")
    page.run()
    assert "UDP-FedAvg: noise 0.5 50.0 %" in charts(page)[0]  # what a run measured before it failed is no point
    assert "UDP-FedAvg, noise 0.5: the worker &lt;b&gt;stopped&lt;/b&gt;. Choose a smaller model." in text(page)
    clicked(page, "tradeoff-retry")
    assert standing(small) == ["queued", *["finished"] * 9]


def test_results_are_read_once(small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    for point in tradeoff_settings.laid_out(small):
        services.store().submit(point.id, point.spec.canonical())
        come_to(point, 0.5)
    page = visit(small)
    read = list[str]()

    def events(store: Store, run: str, after: int = 0) -> list[tuple[int, Event]]:
        read.append(run)
        return []

    monkeypatch.setattr(Store, "events", events)
    page.run()
    assert not page.exception and read == []


def test_one_pass_looks_once_at_where_everything_stands(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, looks, look = visit(small), list[int](), services.standings

    def counted(runs: list[str]) -> dict[str, str]:
        looks.append(len(runs))
        return look(runs)

    monkeypatch.setattr(services, "standings", counted)
    page.run()
    assert looks == [10]


# --- what cannot be asked ----------------------------------------------------------------------------------


def test_a_bad_number_stands_under_its_field_and_nothing_typed_is_lost(small: TradeoffSettings) -> None:
    page = visit(small)
    page.text_input(key="tradeoff-noises").set_value("0.5, loud").run()
    assert not page.exception
    assert "sweep: noises: must be numbers with commas between, got loud" in text(page)
    assert page.text_input(key="tradeoff-noises").value == "0.5, loud" and link(page)["noises"] == "0.5, loud"
    page.text_input(key="tradeoff-noises").set_value("0.5, -2").run()
    assert "udp-fedavg: noise: must be a number between 0 and 1000, got -2" in text(page)
    page.text_input(key="tradeoff-noises").set_value("0.5").run()
    assert "Start 6 runs" in [one.label for one in page.button]


def test_too_many_points_are_refused_with_the_remedy(small: TradeoffSettings) -> None:
    page = visit(replace(small, noises=", ".join(map(str, range(1, 60))), seeds=10))
    assert "sweep: points: must be at most 500, got 1190. Ask for fewer noises, seeds or steps." in text(page)
    assert all(one.disabled for one in page.button if one.label.startswith("Start"))


def test_what_would_stop_a_run_is_said_before_the_click(small: TradeoffSettings) -> None:
    page = visit(replace(small, run={**small.run, "dataset": "movie-reviews"}))
    assert "mlp: needs pictures" in text(page) and page.button(key="tradeoff-run").disabled


# --- looking -----------------------------------------------------------------------------------------------


@pytest.fixture
def known(small: TradeoffSettings) -> TradeoffSettings:
    for place, point in enumerate(tradeoff_settings.laid_out(small)):
        services.store().submit(point.id, point.spec.canonical())
        come_to(point, 0.5 + place / 100, 0.8 if point.method == "ppsgd" else None)
    return small


def test_a_view_without_an_epsilon_says_why(known: TradeoffSettings) -> None:
    page = visit(known)
    assert len(charts(page)) == 2
    page.selectbox(key="tradeoff-eyes").select("server").run()
    assert len(charts(page)) == 1 and link(page)["eyes"] == "server"
    assert "UDP-FedAvg, PPSGD: no ε seen by the server, because every upload is seen." in text(page)


def test_whose_models_count_is_a_choice(known: TradeoffSettings) -> None:
    page = visit(known)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert not page.exception and link(page)["whose"] == "personal"
    assert "PPSGD · own models: noise 0.5 80.0 %" in charts(page)[0]
    assert "UDP-FedAvg · shared model" in charts(page)[0]


def test_beside_own_models_stands_what_no_epsilon_covers(known: TradeoffSettings) -> None:
    page = visit(known)
    said = sweep_texts.own_models(["FedAvg"])
    assert "“no protection” is the shared model of FedAvg" in said and html.escape(said) not in text(page)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert html.escape(said) in text(page)


def test_where_nobody_shares_a_last_layer_it_is_said(small: TradeoffSettings) -> None:
    asked = replace(small, methods=("udp-fedavg", "centaur"))
    for point in tradeoff_settings.laid_out(asked):
        services.store().submit(point.id, point.spec.canonical())
        come_to(point, 0.5, 0.8 if point.method == "centaur" else None)
    page = visit(asked)
    said = "CENTAUR · heads averaged"
    assert f"{said}: noise 0.5 50.0 %" in charts(page)[0] and f"{said}: nobody shares a last layer" in text(page)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert "CENTAUR · own models" in charts(page)[0] and "nobody shares a last layer" not in text(page)


def test_a_chosen_point_leads_to_its_runs_in_the_lab(known: TradeoffSettings) -> None:
    page = visit(known)
    assert sweep_texts.CHOOSE in captions(page)
    page.session_state["tradeoff-picked"] = ("ppsgd", 2.0)
    page.run()
    assert "PPSGD, noise 2, server step 0.1: " in text(page) and "An observer&#x27;s odds" in text(page)
    clicked(page, "tradeoff-open")
    points = [one for one in tradeoff_settings.laid_out(known) if (one.method, one.noise) == ("ppsgd", 2.0)]
    assert page.session_state["ids"]["run"] == tuple(one.id for one in points)
    assert product.PROMISE in text(page) and page.session_state["settings"]["method"] == "ppsgd"


def test_the_table_and_the_file_hold_every_number(known: TradeoffSettings) -> None:
    page = visit(known)
    (table,) = page.dataframe
    assert len(table.value) == 5 and set(table.value["seeds"]) == {2}
    cells = tradeoff_cells.read(tradeoff_settings.laid_out(known))
    rows = tradeoff_points.table_csv(cells).splitlines()
    assert len(rows) == 11 and rows[0].startswith("run,method,noise,server-step,seed,accuracy,accuracy-personal,unit")
    assert all(
        row.split(",")[0] == one.id for row, one in zip(rows[1:], tradeoff_settings.laid_out(known), strict=True)
    )


def test_single_fields_of_methods_can_be_set(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-of-ppsgd-head-epochs").set_value(3).run()
    assert not page.exception and link(page)["of"] == "ppsgd.head-epochs=3"
    asked = {one.spec.method.name: one.spec.method for one in tradeoff_settings.laid_out(tradeoff_of(page))}
    assert asked["ppsgd"].head_epochs == 3  # type: ignore[attr-defined]
    page.number_input(key="tradeoff-of-ppsgd-head-epochs").set_value(5000).run()
    assert "ppsgd: head-epochs: must be a whole number between 0 and 1000, got 5000" in text(page)


# --- ways here and away ------------------------------------------------------------------------------------


def test_the_lab_leads_here(screen: Screen) -> None:
    page = clicked(screen("lab"), "to-tradeoff")
    assert sweep_texts.PROMISE in text(page)
    first = services.first_example()
    assert first is not None
    base = RunSpec(**first.spec)
    asked = {
        (one.spec.dataset, one.spec.rounds, one.spec.clients) for one in tradeoff_settings.laid_out(tradeoff_of(page))
    }
    assert asked == {(base.dataset, base.rounds, base.clients)}


def test_the_rest_of_the_question_is_asked_in_the_lab(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-rounds").set_value(7).run()
    clicked(page, "tradeoff-lab")
    settings = page.session_state["settings"]
    assert product.PROMISE in text(page) and (settings["rounds"], settings["clients"]) == (7, 20)


# --- class mode --------------------------------------------------------------------------------------------


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> class_limits.VisitorLimits:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    return class_limits.caps()


def test_a_visitor_of_a_class_asks_a_few_at_a_time(small: TradeoffSettings, shared: class_limits.VisitorLimits) -> None:
    assert shared.runs is not None
    page = clicked(visit(small), "tradeoff-run")
    points = tradeoff_settings.laid_out(small)
    assert [row.id for row in services.store().runs()[::-1]] == [one.id for one in points[: shared.runs]]
    assert sweep_texts.BY_TURNS.format(most=shared.runs) in text(page)
    come_to(points[0], 0.5)
    page.run()
    assert len(services.store().runs()) == shared.runs + 1
    clicked(page, "tradeoff-cancel")
    assert set(standing(small)) == {"finished", "cancelled", ""} and not page.session_state[tradeoff_requests.FEED]
    clicked(page, "tradeoff-go-on")
    assert standing(small).count("queued") == shared.runs


def test_a_visitor_of_a_class_waits_where_the_queue_is_full(
    small: TradeoffSettings, shared: class_limits.VisitorLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        spec = RunSpec(rounds=1, seed=seed)
        services.store().submit(spec.id, spec.canonical(), {"visitor": "another"})
    monkeypatch.setattr(class_limits, "caps", lambda: replace(shared, waiting=3))
    page = clicked(visit(small), "tradeoff-run")
    assert len(services.store().runs()) == 3 and sweep_texts.PAUSED.format(waiting=3) in text(page)


def test_a_class_limits_the_run_as_in_the_lab(small: TradeoffSettings, shared: class_limits.VisitorLimits) -> None:
    assert shared.rounds is not None and shared.seeds is not None
    page = clicked(visit(replace(small, run={**small.run, "rounds": shared.rounds + 1})), "tradeoff-run")
    assert f"class mode: rounds must be at most {shared.rounds}" in text(page) and services.store().runs() == []
    page = clicked(visit(replace(small, seeds=shared.seeds + 1)), "tradeoff-run")
    assert f"class mode: seeds must be at most {shared.seeds}" in text(page) and services.store().runs() == []


def test_what_runs_can_be_stopped_while_the_next_question_is_typed(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    page.text_input(key="tradeoff-noises").set_value("loud").run()
    assert sweep_texts.LAST_GOOD in text(page)
    clicked(page, "tradeoff-cancel")
    assert set(standing(small)) == {"cancelled"}
