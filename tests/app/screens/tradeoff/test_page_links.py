"""Links between the Trade-off screen and the others: each screen receives all settings, the last input included."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import links, run_settings, services, session
from app.texts import sweep as sweep_texts
from engine.jobs.batches import Batch, BatchMember
from engine.specs.run import RunSpec
from tests.app.conftest import Screen
from tests.app.makers import RunMaker
from tests.app.reading import open_screen, text
from tests.app.screens.tradeoff.makers import clicked, finish, link, tradeoff_of, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
VISITED = {"seen:tradeoff": {"noises": "1"}, "seen:leak": {"many": "1"}}  # the visitor opened both screens before


def opened_in_try(page: AppTest) -> tuple[str, ...]:
    settings = page.session_state["try"]
    return tuple(spec.id for spec in run_settings.with_seeds(run_settings.spec_of(settings.run), settings.seeds))


def in_try(page: AppTest) -> AppTest:
    """Leave for Try. A page under test does not follow the link, so Try is opened here."""
    return open_screen(clicked(page, "tradeoff-try"), "try")


# --- to Try and back ---------------------------------------------------------------------------------------


def test_changes_in_try_reach_the_trade_off(small: TradeoffSettings) -> None:
    page = clicked(in_try(visit(small)), "try-change")
    page.number_input(key="try-A-epochs").set_value(3).run()
    clicked(page, "try-to-tradeoff")
    settings = tradeoff_of(page)
    assert (settings.run["epochs"], settings.run["rounds"], settings.run["clients"]) == (3, 2, 20)
    assert (settings.methods, settings.noises, settings.seeds) == (small.methods, small.noises, small.seeds)


def test_the_last_input_in_try_reaches_the_trade_off(screen: Screen) -> None:
    page = clicked(screen("try", **VISITED), "try-change")
    page.number_input(key="try-A-rounds").set_value(7)
    clicked(page, "try-to-tradeoff")  # both reach the server at once
    assert tradeoff_of(page).run["rounds"] == 7 and link(page)["rounds"] == "7"


def test_the_last_input_in_try_does_not_prevent_the_link_to_leak(screen: Screen) -> None:
    page = clicked(screen("try", **VISITED), "try-change")
    page.number_input(key="try-A-rounds").set_value(7)
    clicked(page, "try-to-leak")
    assert page.session_state["leak"].run["clients"] == 100
    assert "run" in page.session_state["leak"].against


def test_the_last_input_in_the_trade_off_reaches_try(small: TradeoffSettings) -> None:
    page = visit(small)
    page.number_input(key="tradeoff-rounds").set_value(7)
    clicked(page, "tradeoff-try")
    assert page.session_state["try"].run["rounds"] == 7


def test_try_receives_one_of_the_compared_methods(small: TradeoffSettings) -> None:
    start = small.with_(methods=("fedceo", "ppsgd"), of={"fedceo": {"every": 3}})
    page = in_try(visit(start))
    run = page.session_state["try"].run
    assert (run["method"], run["method.every"]) == ("fedceo", 3)
    clicked(page, "try-to-tradeoff")
    assert sweep_texts.PROMISE in text(page)
    settings = tradeoff_of(page)
    assert settings.methods == start.methods
    assert sweep_points.method_fields(settings, "fedceo")["every"] == 3


def test_the_method_of_a_run_from_try_is_added(small: TradeoffSettings) -> None:
    one_method = small.with_(methods=("ppsgd",))
    spec = RunSpec(method="fedceo", rounds=3, sampling="poisson")
    settings, _ = TradeoffSettings.read_link(links.tradeoff_link_of_run(spec.canonical()), one_method)
    assert settings.methods == ("ppsgd", "fedceo")
    two_methods = small.with_(methods=("ppsgd", "dp-fedavg"))
    spec = RunSpec(method="dp-fedavg", rounds=3)
    settings, _ = TradeoffSettings.read_link(links.tradeoff_link_of_run(spec.canonical()), two_methods)
    assert settings.methods == two_methods.methods


# --- stored points -----------------------------------------------------------------------------------------


def picked(page: AppTest, name: str = "fedceo", noise: float = 1.0) -> AppTest:
    page.session_state["tradeoff-picked"] = (name, noise)
    return page.run()


def test_a_stored_point_runs_when_try_opens_it() -> None:
    page = picked(visit())
    assert page.button(key="tradeoff-open").label == sweep_texts.OPEN_LIVE
    clicked(page, "tradeoff-open")
    rows = {row.id: row for row in services.store().runs()}
    assert set(opened_in_try(page)) == set(rows) and len(rows) == 3
    assert {(row.spec["method"]["name"], row.status) for row in rows.values()} == {("fedceo", "queued")}
    assert "not on this machine" not in text(page)


def test_a_stored_point_beyond_the_limits_is_refused(monkeypatch: pytest.MonkeyPatch, ask: RunMaker) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    most = class_limits.caps().runs or 0
    for seed in range(most):
        run = services.store().run(ask("queued", seed=seed))
        services.store().batches.request(Batch("seeds", "", (BatchMember(run.id, run.spec),)), "me")
    page = clicked(picked(visit()), "tradeoff-open")
    assert f"at most {most} runs waiting or running" in text(page)
    assert len(services.store().runs()) == most and sweep_texts.PROMISE in text(page)


def test_a_stored_point_whose_run_was_cancelled_runs_as_well() -> None:
    page = visit()
    for point in sweep_points.all_points(tradeoff_of(page)):
        if (point.method, point.noise) == ("fedceo", 1.0):
            services.store().submit(point.id, point.spec.canonical())
            services.store().cancel(point.id)
    clicked(picked(page), "tradeoff-open")
    assert {services.store().status(run) for run in opened_in_try(page)} == {"queued"}


def test_a_finished_run_opens_without_a_new_run(small: TradeoffSettings) -> None:
    points = sweep_points.all_points(small)
    services.store().submit_all({point.id: point.spec.canonical() for point in points})
    for point in points:
        finish(point, 0.5)
    page = picked(visit(small), "ppsgd", 2.0)
    assert page.button(key="tradeoff-open").label == sweep_texts.OPEN
    clicked(page, "tradeoff-open")
    assert len(opened_in_try(page)) == 2 and {row.status for row in services.store().runs()} == {"finished"}


# --- a paper's table ---------------------------------------------------------------------------------------


def test_each_kind_of_sweep_opens_as_it_was_left(small: TradeoffSettings) -> None:
    page = visit(small.with_(table="1/cifar10/paper/written", eyes="client"))
    kind = "tradeoff-kind"
    page.segmented_control(key=kind).set_value(sweep_texts.OF_OWN).run()
    assert (link(page).get("table", ""), link(page)["eyes"]) == ("", "client")
    page.segmented_control(key=kind).set_value(sweep_texts.OF_PAPER).run()
    assert (link(page)["table"], link(page)["eyes"]) == ("1/cifar10/paper/written", "client")


def test_no_table_changes_the_observer(small: TradeoffSettings) -> None:
    page = visit(small.with_(table="1/cifar10/quick/written", eyes="client"))
    page.selectbox(key="tradeoff-paper-row").select("emnist").run()
    page.selectbox(key="tradeoff-paper-reading").select("released").run()
    page.segmented_control(key="tradeoff-kind").set_value(sweep_texts.OF_OWN).run()
    assert link(page)["eyes"] == "client"
