"""The Trade-off screen where things go wrong or happen at once: it keeps what it has and says what is true."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import sweep as sweep_texts
from engine.errors import HomeUnwritable, LeakLensError
from engine.jobs.store import Store
from engine.specs.sweep import SweepPoint
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.makers import Asker
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import breaks, charts, clicked, come_to, keys, link, standing, tradeoff_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
TABLE = "1/cifar10/quick/written"


def submit(points: tuple[SweepPoint, ...]) -> None:
    services.store().submit_all({point.id: point.spec.canonical() for point in points})


def ended(asked: TradeoffSettings, **more: float) -> tuple[SweepPoint, ...]:
    """Every point, ended as if it had been computed."""
    points = tradeoff_settings.laid_out(asked)
    submit(points)
    for place, point in enumerate(points):
        come_to(point, 0.5 + place / 1000, **more)
    return points


def noises() -> set[float]:
    return {row.spec["method"]["noise"] for row in services.store().runs()}


# --- clicks ------------------------------------------------------------------------------------------------


def test_what_was_typed_last_is_what_a_click_asks(small: TradeoffSettings) -> None:
    page = visit(replace(small, plain=False))
    page.text_input(key="tradeoff-noises").set_value("7")
    clicked(page, "tradeoff-run")  # both reach the server at once
    assert tradeoff_of(page).noises == "7" and noises() == {7.0}


def test_a_stored_frontier_run_live_and_stopped_is_still_there_for_everybody() -> None:
    page = visit()
    before = charts(page)
    clicked(page, "tradeoff-live")
    assert charts(page) == before and "0 of 153 runs" in page.get("progress")[0].proto.text
    for point in tradeoff_settings.laid_out(tradeoff_settings.usual())[:3]:
        come_to(point, 0.5)
    clicked(page, "tradeoff-cancel")
    assert len(charts(page)) == len(charts(visit())) == len(before)
    assert "153 of 153 runs are known" in text(page) and "tradeoff-go-on" in keys(page)


def test_another_tab_of_the_same_visitor_is_nobody_else(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "visitor", lambda: "me")
    one, other = visit(small), visit(small)
    clicked(one, "tradeoff-run")
    other.run()
    clicked(one, "tradeoff-cancel")
    assert set(standing(small)) == {"cancelled"}


@pytest.mark.parametrize("name", ["tradeoff", "lab"])
def test_in_a_class_only_who_asked_for_a_run_stops_it(
    small: TradeoffSettings, name: str, screen: Screen, ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    if name == "lab":
        theirs, before = ask("queued", visitor="another"), ""
        page = screen("lab", ids={"run": (theirs,)}, seen={}, settings=run_settings.settled({}))
    else:
        theirs, before = tradeoff_settings.laid_out(small)[0].id, "tradeoff-"
        services.store().submit(theirs, tradeoff_settings.laid_out(small)[0].spec.canonical(), {"visitor": "another"})
        page = visit(small)
    clicked(page, f"{before}cancel")
    assert services.store().status(theirs) == "queued"
    assert "Somebody else asked for 1 of these runs or watches it: it goes on." in text(page)


def test_another_question_forgets_when_the_last_one_began(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    assert page.session_state["tradeoff-began"]
    page.number_input(key="tradeoff-seeds").set_value(1).run()
    page.number_input(key="tradeoff-rounds").set_value(9).run()
    assert not page.session_state["tradeoff-began"]


def test_a_link_brings_a_question_without_what_was_said_of_another(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    page = clicked(visit(replace(small, seeds=(class_limits.caps().seeds or 0) + 1)), "tradeoff-run")
    assert "must be at most" in text(page)
    page.query_params.clear()
    for name, value in tradeoff_settings.link(small).items():
        page.query_params[name] = value
    page.run()
    assert tradeoff_of(page) == small and "must be at most" not in text(page)


def test_the_chosen_view_is_in_the_address_while_runs_go(small: TradeoffSettings) -> None:
    page = clicked(visit(small), "tradeoff-run")
    page.selectbox(key="tradeoff-eyes").select("server").run()
    assert link(page)["eyes"] == "server"


# --- records -----------------------------------------------------------------------------------------------


def damage(home: Path, run: str) -> None:
    with sqlite3.connect(home / "leaklens.db") as database:
        first = "number = (SELECT MIN(number) FROM events WHERE run = ?)"
        database.execute(f"UPDATE events SET body = '{{' WHERE run = ? AND {first}", (run, run))
    database.close()


def test_a_record_that_cannot_be_read_costs_its_own_point_alone(small: TradeoffSettings, home: Path) -> None:
    lost = ended(small)[0].id
    damage(home, lost)
    page = visit(small)
    assert len(charts(page)) == 2 and f"UDP-FedAvg, noise 0.5: The record of run {lost} cannot be read" in text(page)
    assert page.button(key="tradeoff-run").label == "Start the other 1 run"
    clicked(page, "tradeoff-retry")
    assert standing(small) == ["queued", *["finished"] * 9]
    come_to(tradeoff_settings.laid_out(small)[0], 0.5)
    assert page.run().button(key="tradeoff-run").label == sweep_texts.ALL_KNOWN


def test_a_record_of_another_visitor_is_that_visitors_to_delete(
    small: TradeoffSettings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    damage(home, ended(small)[0].id)
    page = visit(small)
    assert "Only the visitor who asked for it may delete it" in text(page) and "tradeoff-retry" not in keys(page)
    button = page.button(key="tradeoff-run")
    assert button.disabled and button.label == sweep_texts.NOTHING_TO_ASK


def test_a_failure_without_a_remedy_ends_with_one_point(small: TradeoffSettings) -> None:
    points = tradeoff_settings.laid_out(small)
    submit(points[:1])
    breaks(points[0], "it said . and stopped", "")
    assert "UDP-FedAvg, noise 0.5: it said . and stopped</p>" in text(visit(small))


def broken(*asked: object) -> NoReturn:
    raise HomeUnwritable("leaklens.db: the disk is gone", "Bring it back")


@pytest.mark.parametrize("name", ["tradeoff", "lab", "leak"])
def test_where_the_store_breaks_while_the_page_is_open_it_says_so(
    screen: Screen, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = screen(name)
    for read in ("statuses", "run", "runs"):
        monkeypatch.setattr(Store, read, broken)
    page.run()
    assert not page.exception and 'll-problem" role="alert">leaklens.db: the disk is gone. Bring it back.' in text(page)


@pytest.mark.parametrize("name", ["tradeoff", "lab"])
def test_where_it_breaks_while_runs_go_a_click_says_so_too(
    screen: Screen, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = "" if name == "lab" else "tradeoff-"
    page = clicked(screen(name), "run" if name == "lab" else "tradeoff-live")
    for read in ("statuses", "run", "runs"):
        monkeypatch.setattr(Store, read, broken)
    clicked(page, f"{before}cancel")
    assert "the disk is gone" in text(page)


def test_the_lab_says_so_too(small: TradeoffSettings, home: Path) -> None:
    first = ended(small)[0]
    damage(home, first.id)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    page.query_params["run"] = first.id
    open_screen(page, "lab").run()
    assert not page.exception and "cannot be read" in text(page)


def test_a_run_that_was_deleted_between_two_looks_is_asked_again(
    small: TradeoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ended(small)[0]
    look = services.standings

    def late(runs: list[str]) -> dict[str, str]:
        found = look(runs)
        with suppress(LeakLensError):
            services.store().delete(first.id)
        return found

    monkeypatch.setattr(services, "standings", late)
    page = visit(small)
    assert len(charts(page)) == 2 and "Start the other 1 run" in [one.label for one in page.button]


def test_a_table_is_found_however_its_link_is_spelled() -> None:
    page = visit(noises="1", table="table-6/cifar10_alexnet/quick/written")
    assert link(page)["table"] == "6/cifar10-alexnet/quick/written"


def test_a_first_visit_with_what_cannot_be_asked_sees_the_stored_frontier() -> None:
    page = visit(noises="loud")
    assert "got loud" in text(page) and len(charts(page)) == 2


def test_a_setting_of_the_run_is_mended_in_the_lab() -> None:
    page = visit(None, **{"noises": "1", "method": "udp-fedavg", "method.clip": "-1"})
    assert f"got -1. {sweep_texts.OF_THE_RUN}" in text(page)
    clicked(page, "tradeoff-lab")
    assert page.session_state["settings"]["method.clip"] == -1.0  # where its field is


def test_a_comma_for_a_point_is_told(small: TradeoffSettings) -> None:
    said = [str(one.value) for one in visit(replace(small, noises="0,5")).caption]
    assert "Read as 0 and 5. A decimal has a point: 0.5." in said
    assert not any("Read as" in str(one.value) for one in visit(small).caption)


# --- sentences ---------------------------------------------------------------------------------------------


def test_how_the_picture_is_to_be_read_is_said_in_every_view(small: TradeoffSettings) -> None:
    asked = replace(small, steps="0.1, 1")
    ended(asked)
    page = visit(asked)
    for eyes in ("outsider", "server"):
        page.selectbox(key="tradeoff-eyes").select(eyes).run()
        assert "a choice made on test data" in text(page) and "Each point is the mean" in text(page)


def test_methods_of_a_table_that_failed_are_counted_in_its_order(small: TradeoffSettings) -> None:
    points = [(cell, cell.point(0)) for cell in tradeoff_settings.cells(TABLE)]
    submit(tuple(point for _, point in points))
    for cell, point in points:
        if cell.label in ("CENTAUR", "FedCEO ϑ>1"):
            breaks(point)
        else:
            come_to(point, 0.3 + cell.reported / 1000)
    said = text(visit(replace(small, table=TABLE, seeds=1)))
    assert "appears, on one seed, of the 3 of 5 methods that finished: 3 of 3 pairs" in said


def test_beside_own_models_stands_no_number_of_the_paper(small: TradeoffSettings) -> None:
    points = [(cell, cell.point(0)) for cell in tradeoff_settings.cells(TABLE)]
    submit(tuple(point for _, point in points))
    for cell, point in points:
        come_to(point, 0.3, 0.9 if cell.label == "PPSGD" else None)
    page = visit(replace(small, table=TABLE, seeds=1, whose="personal"))
    for _, row in page.dataframe[0].value.iterrows():
        assert (row["reported"] != row["reported"]) == ("PPSGD" in row["method"])  # NaN is not itself
    assert "ours, by global accuracy" in text(page)


def test_what_noise_buys_is_compared_on_the_seeds_that_all_have(small: TradeoffSettings) -> None:
    asked = replace(small, seeds=2, noises="1", plain=False)
    points = tradeoff_settings.laid_out(asked)
    submit(points)
    for point in points:
        if (point.method, point.seed) != ("ppsgd", 1):
            come_to(point, 0.5, epsilon=3.0 + point.seed)
    page = visit(asked)
    assert "does not buy them the same" not in text(page)
    come_to(next(point for point in points if (point.method, point.seed) == ("ppsgd", 1)), 0.5, epsilon=9.0)
    page.run()
    assert "ε 4 for UDP-FedAvg; ε 9 for PPSGD" in text(page)


def test_where_nothing_is_learnt_no_price_differs(small: TradeoffSettings) -> None:
    asked = replace(small, noises="1", plain=False)
    ended(asked, epsilon=0.0)
    said = text(visit(asked))
    assert "does not buy them the same" not in said and "ε = 0 seen by an outsider, for nothing is learnt" in said


def test_one_bad_noise_speaks_for_itself_alone(small: TradeoffSettings) -> None:
    page = visit(replace(small, noises="0, 1", methods=("udp-fedavg",)))
    for point in tradeoff_settings.laid_out(tradeoff_of(page)):
        submit((point,))
        come_to(point, 0.5)
    page.run()
    said = text(page)
    assert "UDP-FedAvg at noise 0" in said and ">UDP-FedAvg<" in said  # each with its own promise


def test_before_the_click_an_epsilon_has_all_its_words(small: TradeoffSettings) -> None:
    said = text(visit(replace(small, plain=False)))
    assert "ε per client, seen by an outsider, zero-out, δ = 1e-5, poisson sampling, " in said
    assert sweep_texts.NOTHING_SAID in said  # noise 0.5 says nothing, and not by colour alone
