"""The Trade-off screen shows stored results, runs what its form describes, and explains what cannot run."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.points import panel as points_panel
from app.screens.tradeoff.settings import TradeoffSettings
from app.screens.try_it import texts as try_texts
from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import numbers, product, states
from app.texts import sweep as sweep_texts
from engine.events import Event
from engine.examples import sweep
from engine.jobs.store import Store
from engine.specs.run import RunSpec
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import (
    captions,
    charts,
    clicked,
    fail,
    finish,
    keys,
    link,
    statuses,
    tradeoff_of,
    visit,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


# --- a first visit -----------------------------------------------------------------------------------------


def test_a_first_visit_shows_a_finished_frontier() -> None:
    page = visit()
    example = sweep.sweep_example()
    assert example is not None and services.store().runs() == []
    assert states.STORED.format(made=example.made) in captions(page) and "tradeoff-live" in keys(page)
    (by_epsilon,) = charts(page)
    assert "UDP-FedAvg: ε 3.15 17.9 %" in by_epsilon and "seen by the server" in by_epsilon
    assert "With ε at most 10 against the server, FedCEO reaches 29.2 %, UDP-FedAvg 27.0 %" in text(page)
    assert "PPSGD and CENTAUR" in text(page) and page.button(key="tradeoff-run").disabled
    page.segmented_control(key="tradeoff-axis").set_value("noise").run()
    assert "UDP-FedAvg: noise 0.5" in charts(page)[0] and link(page)["axis"] == "noise"
    assert "At noise 2, " in text(page) and "different ε" not in text(page)
    page.segmented_control(key="tradeoff-axis").set_value("epsilon").run()
    assert TradeoffSettings.read_link(link(page), TradeoffSettings.default()) == (TradeoffSettings.default(), [])


def test_the_stored_frontier_is_shown_before_the_shelves_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    services.shared()
    monkeypatch.setattr(services.Services, "ready", lambda shared, wait=0.0: False)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    open_screen(page, "tradeoff")
    page.run()
    assert not page.exception and product.GETTING_READY in text(page)
    assert len(charts(page)) == 1 and "With ε at most 10 against the server" in text(page)


def test_run_live_submits_every_stored_point() -> None:
    page = clicked(visit(), "tradeoff-live")
    assert len(services.store().runs()) == len(sweep_points.all_points(TradeoffSettings.default()))
    assert "0 of 204 runs done" in page.get("progress")[0].proto.text


def test_points_that_are_not_stored_are_submitted_alone() -> None:
    page = visit(TradeoffSettings.default().with_(noises="0.25, 0.5, 1, 2, 4"))
    missing = len(sweep_points.all_points(tradeoff_of(page))) - 204
    assert "204 of them finished already" in captions(page)
    assert page.button(key="tradeoff-run").label == f"Start the other {missing} runs"
    clicked(page, "tradeoff-run")
    assert len(services.store().runs()) == missing


# --- running -----------------------------------------------------------------------------------------------


def test_the_expected_time_and_epsilon_are_shown_before_the_click(small: TradeoffSettings) -> None:
    page = visit(small)
    assert "10 runs. Expected time here: " in captions(page)
    assert sweep_texts.WAITING in text(page) and "computed before any run" in text(page)
    spec = next(point.spec for point in sweep_points.all_points(small) if point.noise == 2.0)
    answers = services.forecast_of(spec.canonical()).answers
    answer = next(answer for answer in answers if answer.view == "outsider")
    assert f"ε {numbers.epsilon(answer.value)}" in text(page)


def test_a_click_submits_every_point_the_first_seed_first(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    rows = services.store().runs()[::-1]
    assert [row.id for row in rows] == [point.id for point in sweep_points.all_points(small)]
    (batch,) = services.store().batches.listed()
    assert batch.runs == tuple(row.id for row in rows) and len(batch.visitors) == 1
    assert page.button(key="tradeoff-run").disabled and "tradeoff-cancel" in keys(page)


def test_points_appear_as_runs_finish_and_stay_after_a_cancel(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    points = sweep_points.all_points(small)
    finish(points[0], 0.61)
    page.run()
    assert "1 of 10 runs" in page.get("progress")[0].proto.text
    assert "UDP-FedAvg: noise 0.5 61.0 %" in charts(page)[0]
    clicked(page, "tradeoff-cancel")
    assert statuses(small) == ["finished", *["cancelled"] * 9]
    assert sweep_texts.STOPPED.format(known=1, all=10) in text(page) and "61.0 %" in charts(page)[0]
    clicked(page, "tradeoff-go-on")
    assert statuses(small) == ["finished", *["queued"] * 9]
    assert {row.attempt for row in services.store().runs()} == {1, 2}


def test_a_link_restores_everything(small: TradeoffSettings) -> None:
    for point in sweep_points.all_points(small)[:5]:
        services.store().submit(point.id, point.spec.canonical())
        finish(point, 0.5 if point.noise else 0.9)
    page = visit(small)
    assert "5 of them finished already" in captions(page)
    assert page.button(key="tradeoff-run").label.startswith("Start the other 5")
    assert "FedAvg: no noise 90.0 %" in charts(page)[0]


def test_runs_that_others_requested_continue(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    first = sweep_points.all_points(small)[0].id
    services.store().submit(first, services.store().run(first).spec, visitor="another")
    clicked(page, "tradeoff-cancel")
    assert statuses(small) == ["queued", *["cancelled"] * 9]
    assert "Someone else requested 1 of these runs: it continues." in text(page)


def test_a_failed_run_has_its_reason_and_can_be_retried(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    points = sweep_points.all_points(small)
    for point in points[1:]:
        finish(point, 0.5)
    fail(points[0], "the worker <b>stopped</b>", "Choose a smaller model")
    page.run()
    assert "UDP-FedAvg: noise 0.5 50.0 %" in charts(page)[0]  # an accuracy before the failure is no point
    assert "UDP-FedAvg, noise 0.5: the worker &lt;b&gt;stopped&lt;/b&gt;. Choose a smaller model." in text(page)
    clicked(page, "tradeoff-retry")
    assert statuses(small) == ["queued", *["finished"] * 9]


def test_results_are_read_once(small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    for point in sweep_points.all_points(small):
        services.store().submit(point.id, point.spec.canonical())
        finish(point, 0.5)
    page = visit(small)
    runs_read = list[str]()

    def events(store: Store, run: str, after: int = 0) -> list[tuple[int, Event]]:
        runs_read.append(run)
        return []

    monkeypatch.setattr(Store, "events", events)
    page.run()
    assert not page.exception and runs_read == []


def test_one_pass_reads_all_statuses_once(small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    page = visit(small)
    counts = list[int]()
    read_statuses = services.statuses

    def counted(runs: list[str]) -> dict[str, str]:
        counts.append(len(runs))
        return read_statuses(runs)

    monkeypatch.setattr(services, "statuses", counted)
    page.run()
    assert counts == [10]


# --- refusals ----------------------------------------------------------------------------------------------


def test_a_refused_number_has_its_message_and_stays_in_its_field(small: TradeoffSettings) -> None:
    page = visit(small)
    page.text_input(key="tradeoff-noises").set_value("0.5, loud").run()
    assert not page.exception
    assert "Noise σ: must be numbers with a comma and a space between, got loud" in text(page)
    assert page.text_input(key="tradeoff-noises").value == "0.5, loud" and link(page)["noises"] == "0.5, loud"
    page.text_input(key="tradeoff-noises").set_value("0.5, -2").run()
    assert "Noise σ: must be a number between 0 and 1000, got -2" in text(page)
    page.text_input(key="tradeoff-noises").set_value("0.5").run()
    assert "Start 6 runs" in [button.label for button in page.button]


def test_too_many_points_are_refused_with_the_remedy(small: TradeoffSettings) -> None:
    page = visit(small.with_(noises=", ".join(map(str, range(1, 60))), seeds=10))
    assert "Points: must be at most 500, got 1190. Choose fewer noises, seeds or steps." in text(page)
    assert all(button.disabled for button in page.button if button.label.startswith("Start"))


def test_a_problem_that_prevents_a_run_is_shown_before_the_click(small: TradeoffSettings) -> None:
    page = visit(small.with_(run={**small.run, "dataset": "movie-reviews"}))
    assert "mlp: needs pictures" in text(page) and page.button(key="tradeoff-run").disabled


# --- the view ----------------------------------------------------------------------------------------------


@pytest.fixture
def finished(small: TradeoffSettings) -> TradeoffSettings:
    for place, point in enumerate(sweep_points.all_points(small)):
        services.store().submit(point.id, point.spec.canonical())
        finish(point, 0.5 + place / 100, 0.8 if point.method == "ppsgd" else None)
    return small


def test_a_view_without_an_epsilon_has_its_reason(finished: TradeoffSettings) -> None:
    page = visit(finished.with_(axis="epsilon"))
    assert charts(page)[0].startswith("Accuracy by ε")
    page.selectbox(key="observer-choice").select("server").run()
    assert charts(page)[0].startswith("Accuracy by noise") and link(page)["eyes"] == "server"
    assert "UDP-FedAvg, PPSGD: no ε seen by the server, because every upload is seen." in text(page)


def test_the_personal_models_can_be_chosen(finished: TradeoffSettings) -> None:
    page = visit(finished)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert not page.exception and link(page)["whose"] == "personal"
    assert "PPSGD · own models: noise 0.5 80.0 %" in charts(page)[0]
    assert "UDP-FedAvg · shared model" in charts(page)[0]


def test_next_to_personal_models_the_page_explains_that_no_epsilon_covers_them(finished: TradeoffSettings) -> None:
    page = visit(finished)
    note = sweep_texts.own_models(["FedAvg"])
    assert "“no protection” is the shared model of FedAvg" in note and html.escape(note) not in text(page)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert html.escape(note) in text(page)


def test_methods_without_a_shared_last_layer_are_named(small: TradeoffSettings) -> None:
    settings = small.with_(methods=("udp-fedavg", "centaur"))
    for point in sweep_points.all_points(settings):
        services.store().submit(point.id, point.spec.canonical())
        finish(point, 0.5, 0.8 if point.method == "centaur" else None)
    page = visit(settings)
    title = "CENTAUR · heads averaged"
    assert f"{title}: noise 0.5 50.0 %" in charts(page)[0] and f"{title}: clients share no last layer" in text(page)
    page.segmented_control(key="tradeoff-whose").set_value("personal").run()
    assert "CENTAUR · own models" in charts(page)[0] and "clients share no last layer" not in text(page)


def test_a_chosen_point_opens_its_runs_in_try(finished: TradeoffSettings) -> None:
    page = visit(finished)
    assert sweep_texts.CHOOSE in captions(page)
    page.session_state["tradeoff-picked"] = ("ppsgd", 2.0)
    page.run()
    assert "PPSGD, noise 2, server step 0.1: " in text(page) and "An observer who" in text(page)
    clicked(page, "tradeoff-open")
    points = sweep_points.all_points(finished)
    ids = [point.id for point in points if (point.method, point.noise) == ("ppsgd", 2.0)]
    settings = page.session_state["try"]
    opened = run_settings.with_seeds(run_settings.spec_of(settings.run), settings.seeds)
    assert [spec.id for spec in opened] == ids and try_texts.TITLE in text(page)


def test_the_table_and_the_file_have_every_number(finished: TradeoffSettings) -> None:
    page = visit(finished)
    (table,) = page.dataframe
    assert len(table.value) == 5 and set(table.value["seeds"]) == {2}
    points = sweep_points.all_points(finished)
    cells = tradeoff_cells.read(points)
    rows = points_panel.table_csv(cells).splitlines()
    assert len(rows) == 11 and rows[0].startswith("run,method,noise,server-step,seed,accuracy,accuracy-personal,unit")
    assert [row.split(",")[0] for row in rows[1:]] == [point.id for point in points]


def test_single_fields_of_methods_can_be_set(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-of-ppsgd-head-epochs").set_value(3).run()
    assert not page.exception and link(page)["of"].endswith(";ppsgd.head-epochs=3")
    points = sweep_points.all_points(tradeoff_of(page))
    methods = {point.spec.method.name: point.spec.method for point in points}
    assert methods["ppsgd"].head_epochs == 3  # type: ignore[attr-defined]
    page.number_input(key="tradeoff-of-ppsgd-head-epochs").set_value(5000).run()
    assert "PPSGD, head epochs: must be a whole number between 0 and 1000, got 5000" in text(page)


# --- links from and to other screens -----------------------------------------------------------------------


def test_try_links_to_the_trade_off(screen: Screen) -> None:
    page = screen("try")
    base = run_settings.spec_of(page.session_state["try"].run)
    clicked(page, "try-to-tradeoff")
    assert sweep_texts.PROMISE in text(page)
    specs = [point.spec for point in sweep_points.all_points(tradeoff_of(page))]
    assert {(spec.dataset, spec.rounds, spec.clients) for spec in specs} == {(base.dataset, base.rounds, base.clients)}


def test_try_receives_the_run(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-rounds").set_value(7).run()
    clicked(page, "tradeoff-try")
    settings = page.session_state["try"]
    assert try_texts.TITLE in text(page) and (settings.run["rounds"], settings.run["clients"]) == (7, 20)


# --- class mode --------------------------------------------------------------------------------------------


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> class_limits.VisitorLimits:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    return class_limits.caps()


def test_in_class_mode_a_visitor_has_one_sweep_at_a_time(
    small: TradeoffSettings, shared: class_limits.VisitorLimits
) -> None:
    page = clicked(visit(small), "tradeoff-run")
    assert set(statuses(small)) == {"queued"}  # all of them wait, and the fair queue serves every visitor
    other = clicked(visit(small.with_(noises="9")), "tradeoff-run")
    assert sweep_texts.BUSY[0] in text(other) and set(statuses(small)) == {"queued"}
    clicked(page, "tradeoff-cancel")
    clicked(other, "tradeoff-run")
    assert sweep_texts.BUSY[0] not in text(other)


def test_in_class_mode_a_full_queue_refuses_the_runs(
    small: TradeoffSettings, shared: class_limits.VisitorLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        spec = RunSpec(rounds=1, seed=seed)
        services.store().submit(spec.id, spec.canonical(), visitor="another")
    monkeypatch.setattr(class_limits, "caps", lambda: replace(shared, waiting=3))
    page = clicked(visit(small), "tradeoff-run")
    assert len(services.store().runs()) == 3 and "the queue holds at most 3 runs" in text(page)


def test_the_run_of_another_visitor_leaves_the_button(small: TradeoffSettings) -> None:
    """B7: another visitor's run must not turn my sweep to `Under way` without Start."""
    point = sweep_points.all_points(small)[0]
    services.store().submit(point.id, point.spec.canonical(), visitor="another")
    page = visit(small)
    button = page.button(key="tradeoff-run")
    assert button.label == "Start the other 9 runs" and not button.disabled
    clicked(page, "tradeoff-run")
    assert set(statuses(small)) == {"queued"} and page.button(key="tradeoff-run").disabled


def test_runs_that_another_visitor_requested_can_be_requested_too(small: TradeoffSettings) -> None:
    for point in sweep_points.all_points(small):
        services.store().submit(point.id, point.spec.canonical(), visitor="another")
    page = visit(small)
    assert "someone else requested these" in page.get("progress")[0].proto.text
    clicked(page, "tradeoff-run")
    services.store().withdraw([point.id for point in sweep_points.all_points(small)], "another")
    assert set(statuses(small)) == {"queued"}


def test_class_mode_limits_the_run_as_in_try(small: TradeoffSettings, shared: class_limits.VisitorLimits) -> None:
    assert shared.rounds is not None and shared.seeds is not None
    page = visit(small)
    assert page.number_input(key="tradeoff-rounds").max == shared.rounds
    assert page.number_input(key="tradeoff-seeds").max == shared.seeds
    # A link brings what the form does not offer.
    page = visit(small.with_(run={**small.run, "rounds": shared.rounds + 1}))
    assert text(page).count(f"class mode: rounds must be at most {shared.rounds}") == 1
    assert page.button(key="tradeoff-run").disabled
    page = visit(small.with_(seeds=shared.seeds + 1))
    assert f"class mode: seeds must be at most {shared.seeds}" in text(page)
    assert page.button(key="tradeoff-run").disabled


def test_runs_can_be_cancelled_while_the_form_is_invalid(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    page.text_input(key="tradeoff-noises").set_value("loud").run()
    assert sweep_texts.LAST_GOOD in text(page)
    clicked(page, "tradeoff-cancel")
    assert set(statuses(small)) == {"cancelled"}
