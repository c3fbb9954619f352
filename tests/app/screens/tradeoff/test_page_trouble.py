"""The Trade-off screen with failures and simultaneous actions: it keeps its results and its messages are correct."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import services, session
from app.texts import privacy
from app.texts import sweep as sweep_texts
from engine.errors import HomeUnwritable, LeakLensError
from engine.jobs.store import Store
from engine.specs.sweep import SweepPoint
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.makers import RunMaker
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import charts, clicked, fail, finish, keys, link, statuses, tradeoff_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
TABLE = "1/cifar10/quick/written"


def submit(points: tuple[SweepPoint, ...]) -> None:
    services.store().submit_all({point.id: point.spec.canonical() for point in points})


def finish_all(settings: TradeoffSettings, **result: float) -> tuple[SweepPoint, ...]:
    """Finish every point, and return the points."""
    points = sweep_points.all_points(settings)
    submit(points)
    for place, point in enumerate(points):
        finish(point, 0.5 + place / 1000, **result)
    return points


def noises() -> set[float]:
    return {row.spec["method"]["noise"] for row in services.store().runs()}


# --- clicks ------------------------------------------------------------------------------------------------


def test_a_click_uses_the_last_input(small: TradeoffSettings) -> None:
    page = visit(small.with_(plain=False))
    page.text_input(key="tradeoff-noises").set_value("7")
    clicked(page, "tradeoff-run")  # both reach the server at once
    assert tradeoff_of(page).noises == "7" and noises() == {7.0}


def test_a_stored_frontier_that_was_run_and_cancelled_is_still_shown_to_all() -> None:
    page = visit()
    before = charts(page)
    clicked(page, "tradeoff-live")
    assert charts(page) == before and "0 of 204 runs" in page.get("progress")[0].proto.text
    for point in sweep_points.all_points(TradeoffSettings.default())[:3]:
        finish(point, 0.5)
    clicked(page, "tradeoff-cancel")
    assert len(charts(page)) == len(charts(visit())) == len(before)
    assert "tradeoff-live" in keys(page) and "tradeoff-go-on" not in keys(page)  # all points have a result again
    assert page.button(key="tradeoff-run").label == sweep_texts.ALL_FINISHED


def test_another_tab_of_the_same_visitor_is_no_other_visitor(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "visitor", lambda: "me")
    first_tab = visit(small)
    second_tab = visit(small)
    clicked(first_tab, "tradeoff-run")
    second_tab.run()
    clicked(first_tab, "tradeoff-cancel")
    assert set(statuses(small)) == {"cancelled"}


@pytest.mark.parametrize("name", ["tradeoff", "try"])
def test_in_class_mode_a_visitor_cannot_cancel_the_run_of_another(
    small: TradeoffSettings, name: str, screen: Screen, ask: RunMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    if name == "try":
        run = ask("queued", visitor="another")
        button = "try-cancel"
        page = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), "try")
        page.query_params["run"] = run
        assert services.shared().ready(PATIENCE_S)
        page.run()
    else:
        point = sweep_points.all_points(small)[0]
        run = point.id
        button = "tradeoff-cancel"
        services.store().submit(run, point.spec.canonical(), visitor="another")
        page = visit(small)
    assert button not in keys(page)
    services.store().submit(run, services.store().run(run).spec, visitor="me")
    page.run()
    clicked(page, button)
    assert services.store().status(run) == "queued"
    noun = "runs and attacks" if name == "try" else "runs"
    assert f"Someone else requested 1 of these {noun}: it continues." in text(page)


def test_a_link_replaces_the_settings_and_their_messages(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    page = visit(small.with_(seeds=(class_limits.caps().seeds or 0) + 1))
    assert "must be at most" in text(page) and page.button(key="tradeoff-run").disabled
    page.query_params.clear()
    for name, value in small.link().items():
        page.query_params[name] = value
    page.run()
    assert tradeoff_of(page) == small and "must be at most" not in text(page)


def test_the_chosen_view_is_in_the_address_while_runs_continue(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    page.selectbox(key="observer-choice").select("server").run()
    assert link(page)["eyes"] == "server"


# --- records -----------------------------------------------------------------------------------------------


def damage(home: Path, run: str) -> None:
    with sqlite3.connect(home / "leaklens.db") as database:
        first = "number = (SELECT MIN(number) FROM events WHERE run = ?)"
        database.execute(f"UPDATE events SET body = '{{' WHERE run = ? AND {first}", (run, run))
    database.close()


def test_a_damaged_record_affects_only_its_own_point(small: TradeoffSettings, home: Path) -> None:
    lost = finish_all(small)[0].id
    damage(home, lost)
    page = visit(small)
    assert len(charts(page)) == 1 and f"UDP-FedAvg, noise 0.5: The record of run {lost} cannot be read" in text(page)
    assert page.button(key="tradeoff-run").label == "Start the other 1 run"
    clicked(page, "tradeoff-retry")
    assert statuses(small) == ["queued", *["finished"] * 9]
    finish(sweep_points.all_points(small)[0], 0.5)
    assert page.run().button(key="tradeoff-run").label == sweep_texts.ALL_FINISHED


def test_only_its_visitor_may_delete_a_damaged_record(
    small: TradeoffSettings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    damage(home, finish_all(small)[0].id)
    page = visit(small)
    assert "Only the visitor who requested it may delete it" in text(page) and "tradeoff-retry" not in keys(page)
    button = page.button(key="tradeoff-run")
    assert button.disabled and button.label == sweep_texts.NOTHING_TO_RUN


def test_a_failure_without_a_remedy_is_shown_as_it_is(small: TradeoffSettings) -> None:
    points = sweep_points.all_points(small)
    submit(points[:1])
    fail(points[0], "it said . and stopped", "")
    assert "UDP-FedAvg, noise 0.5: it said . and stopped</p>" in text(visit(small))


def broken(*arguments: object) -> NoReturn:
    raise HomeUnwritable("leaklens.db: the disk is gone", "Bring it back")


@pytest.mark.parametrize("name", ["tradeoff", "try", "leak"])
def test_a_store_that_breaks_while_the_page_is_open_is_reported(
    screen: Screen, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = screen(name)
    for read in ("statuses", "run", "runs"):
        monkeypatch.setattr(Store, read, broken)
    page.run()
    assert not page.exception and 'll-problem" role="alert">leaklens.db: the disk is gone. Bring it back.' in text(page)


@pytest.mark.parametrize("name", ["tradeoff", "try"])
def test_a_store_that_breaks_while_runs_continue_is_reported_after_a_click(
    screen: Screen, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, cancel = ("try-run", "try-cancel") if name == "try" else ("tradeoff-live", "tradeoff-cancel")
    page = clicked(screen(name), run)
    for read in ("statuses", "run", "runs"):
        monkeypatch.setattr(Store, read, broken)
    clicked(page, cancel)
    assert "the disk is gone" in text(page)


def test_try_reports_a_damaged_record(small: TradeoffSettings, home: Path) -> None:
    first = finish_all(small)[0]
    damage(home, first.id)
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    page.query_params["run"] = first.id
    open_screen(page, "try").run()
    assert not page.exception and "cannot be read" in text(page)


def test_a_run_that_was_deleted_after_its_status_was_read_can_run_again(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = finish_all(small)[0]
    read_statuses = services.statuses

    def read_and_delete(runs: list[str]) -> dict[str, str]:
        run_statuses = read_statuses(runs)
        with suppress(LeakLensError):
            services.store().delete(first.id)
        return run_statuses

    monkeypatch.setattr(services, "statuses", read_and_delete)
    page = visit(small)
    assert len(charts(page)) == 1 and "Start the other 1 run" in [button.label for button in page.button]


def test_a_link_may_spell_a_table_in_other_ways() -> None:
    page = visit(noises="1", table="table-6/cifar10_alexnet/quick/written")
    assert link(page)["table"] == "6/cifar10-alexnet/quick/written"


def test_a_first_visit_with_invalid_settings_shows_the_stored_frontier() -> None:
    page = visit(noises="loud")
    assert "got loud" in text(page) and len(charts(page)) == 1


def test_an_invalid_setting_of_the_run_is_fixed_in_try() -> None:
    page = visit(None, **{"noises": "1", "method": "udp-fedavg", "method.clip": "-1"})
    assert f"got -1. {sweep_texts.OF_THE_RUN}" in text(page)
    clicked(page, "tradeoff-try")
    assert page.session_state["try"].run["method.clip"] == -1.0  # where its field is


def test_b18_a_comma_that_may_be_a_decimal_point_is_asked_about(small: TradeoffSettings) -> None:
    page = visit(small.with_(noises="0,5"))
    assert f"Noise σ: {sweep_texts.NUMBERS_RULE}, got 0,5. Write 0.5 for one number, or 0, 5 for two." in text(page)
    assert page.text_input(key="tradeoff-noises").value == "0,5" and not page.exception
    assert sweep_texts.NUMBERS_RULE not in text(visit(small.with_(noises="0, 5")))


# --- sentences ---------------------------------------------------------------------------------------------


def test_every_view_explains_how_to_read_the_charts(small: TradeoffSettings) -> None:
    settings = small.with_(steps="0.1, 1")
    finish_all(settings)
    page = visit(settings)
    for view in ("outsider", "server"):
        page.selectbox(key="observer-choice").select(view).run()
        assert "This choice uses test data" in text(page) and "Each point is the mean" in text(page)


def test_the_ranking_counts_the_methods_that_failed(small: TradeoffSettings) -> None:
    points = [(cell, cell.point(0)) for cell in sweep_points.cells(TABLE)]
    submit(tuple(point for _, point in points))
    for cell, point in points:
        if cell.label in ("CENTAUR", "FedCEO ϑ>1"):
            fail(point)
        else:
            finish(point, 0.3 + cell.reported / 1000)
    page = visit(small.with_(table=TABLE, seeds=1))
    assert "appears, on one seed, of the 3 of 5 methods that finished: 3 of 3 pairs" in text(page)


def test_next_to_personal_models_the_paper_has_no_number(small: TradeoffSettings) -> None:
    points = [(cell, cell.point(0)) for cell in sweep_points.cells(TABLE)]
    submit(tuple(point for _, point in points))
    for cell, point in points:
        finish(point, 0.3, 0.9 if cell.label == "PPSGD" else None)
    page = visit(small.with_(table=TABLE, seeds=1, whose="personal"))
    for _, row in page.dataframe[0].value.iterrows():
        is_missing = row["reported"] != row["reported"]  # NaN does not equal itself
        assert is_missing == ("PPSGD" in row["method"])
    assert "ours, by global accuracy" in text(page)


def test_epsilon_at_one_noise_is_compared_on_common_seeds(small: TradeoffSettings) -> None:
    settings = small.with_(seeds=2, noises="1", plain=False)
    points = sweep_points.all_points(settings)
    submit(points)
    late = next(point for point in points if (point.method, point.seed) == ("ppsgd", 1))
    for point in points:
        if point.id != late.id:
            finish(point, 0.5, epsilon=3.0 + point.seed)
    page = visit(settings)
    assert "does not buy them the same" not in text(page)
    finish(late, 0.5, epsilon=9.0)
    page.run()
    assert "ε 4 for UDP-FedAvg; ε 9 for PPSGD" in text(page)


def test_methods_with_epsilon_0_are_not_compared(small: TradeoffSettings) -> None:
    settings = small.with_(noises="1", plain=False)
    finish_all(settings, epsilon=0.0)
    page_text = text(visit(settings))
    assert "does not buy them the same" not in page_text
    assert "ε = 0 seen by an outsider, which a logarithmic axis cannot show" in page_text


def test_noise_0_has_its_own_guarantee(small: TradeoffSettings) -> None:
    page = visit(small.with_(noises="0, 1", methods=("udp-fedavg",)))
    for point in sweep_points.all_points(tradeoff_of(page)):
        submit((point,))
        finish(point, 0.5)
    page.run()
    assert "UDP-FedAvg at noise 0" in text(page) and ">UDP-FedAvg<" in text(page)  # each with its own guarantee


def test_a_forecast_epsilon_has_all_its_terms(small: TradeoffSettings) -> None:
    page_text = text(visit(small.with_(plain=False)))
    assert "ε per client, seen by an outsider, zero-out, δ = 1e-5, poisson sampling, " in page_text


def test_a_forecast_epsilon_has_the_colour_and_the_word_of_its_size(small: TradeoffSettings) -> None:
    page_text = text(visit(small.with_(noises="0.5, 4, 8, 30", plain=False)))
    cells = re.findall(r'<b class="ll-(\w+)">ε ([\d.e+]+)</b> <small>([\w ]+)</small>', page_text)
    assert {side for side, _, _ in cells} >= {"private", "leaking"}
    for side, value, word in cells:
        promise = privacy.size(float(value))
        assert (side, word) == (promise.side, promise.word)
    assert page_text.count("<b class=") == len(cells)


@pytest.mark.parametrize(("axis", "drawn", "other"), [("epsilon", "epsilon", "noise"), ("noise", "noise", "epsilon")])
def test_only_the_chart_on_the_page_can_be_saved(axis: str, drawn: str, other: str) -> None:
    page_text = text(visit(TradeoffSettings.default().with_(axis=axis)))
    assert f'data-chart="tradeoff-{drawn}-user"' in page_text
    assert f'data-chart="tradeoff-{other}-user"' not in page_text
