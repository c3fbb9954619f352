"""The Runs screen shows every run as the store has it, and the errors of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from app.screens.runs import listing as run_listing
from app.texts import numbers, states
from app.texts import runs as run_texts
from engine.errors import Damaged, HomeFull
from engine.events import Finished, Measured, Round, Spent
from engine.jobs.store import Store
from engine.results.report import report
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.makers import ROUNDS, RunMaker
from tests.app.reading import lines, open_screen, press, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


# --- the rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", run_listing.STATUSES)
def test_a_run_is_shown_as_the_store_has_it(store: Store, ask: RunMaker, screen: Screen, status: str) -> None:
    run = ask(status, seed=3)
    page = screen("runs")
    assert not page.exception
    line = lines(page)[run]
    body = report(event for _, event in store.events(run))
    assert line.startswith(
        "UDP-FedAvg with noise 1 trains MLP on Fashion-MNIST: 100 clients (IID), 10 a round, 4 rounds"
    )
    assert f"state {states.STATES[status]}" in line
    if status == "queued":
        assert "place 1 in the queue" in line and "accuracy –" in line and "ε, server –" in line
    else:
        assert f"round {store.run(run).round} of {ROUNDS}" in line
        assert body["accuracy"] is not None and f"accuracy {numbers.percent(body['accuracy'])}" in line
        assert body["epsilon"]["server"] > 10 and "ε, server – no meaningful promise" in line
    assert "submitted just now" in line and f"disk {run_texts.size(store.run(run).bytes)}" in line


def test_a_run_on_a_gpu_says_so(store: Store, ask: RunMaker, screen: Screen) -> None:
    here = ask("queued", seed=3)
    there = "0123456789ab"
    store.submit(there, {**store.run(here).spec, "seed": 4}, {"device": "cuda:1"})
    shown = lines(screen("runs"))
    assert "on cuda:1" in shown[there] and "on cuda" not in shown[here] and "on cpu" not in shown[here]


@pytest.mark.parametrize("status", ["finished", "cancelled"])
def test_a_run_of_an_earlier_version_is_marked_and_does_not_go_on(ask: RunMaker, screen: Screen, status: str) -> None:
    earlier, current = ask(status, format=1), ask(status)
    page = screen("runs")
    shown = lines(page)
    assert states.EARLIER in shown[earlier] and states.EARLIER not in shown[current]
    keys = {button.key for button in page.button}
    assert f"resume:{earlier}" not in keys and (f"resume:{current}" in keys) == (status == "cancelled")
    opened = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), "try")
    opened.query_params["run"] = earlier
    opened.run()
    assert not opened.exception and states.EARLIER_RUN in text(opened)
    assert opened.session_state["try"].opened == earlier


def test_the_newest_run_comes_first(store: Store, ask: RunMaker, screen: Screen) -> None:
    finished = [ask("finished", seed) for seed in range(3)]
    waiting = [ask("queued", seed) for seed in range(3, 6)]
    shown = lines(screen("runs"))
    assert list(shown) == [*reversed(waiting), *reversed(finished)]
    for place, run in enumerate(waiting, 1):
        assert f"place {place} in the queue" in shown[run]


def test_the_store_is_summed_up(store: Store, ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_QUOTA_GB", "3")
    for seed, status in enumerate(("finished", "finished", "failed", "queued")):
        ask(status, seed)
    page = screen("runs")
    assert "4 runs: 1 waiting, 2 finished, 1 failed." in text(page)
    assert f"The home holds {run_texts.size(store.used())} of the 3 GB allowed." in text(page)


def test_a_run_that_failed_is_listed_with_its_reason_and_without_markup(ask: RunMaker, screen: Screen) -> None:
    ask("failed")
    shown = text(screen("runs"))
    assert "the worker &lt;b&gt;stopped&lt;/b&gt;. Choose a smaller model." in shown and "<b>stopped" not in shown


def test_settings_that_are_not_at_their_default_are_listed(ask: RunMaker, screen: Screen) -> None:
    run = ask(lr=0.25, model={"name": "mlp", "hidden": 32})
    line = lines(screen("runs"))[run]
    assert "lr 0.25" in line and "hidden 32" in line and "batch" not in line


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (0.9, "0.9 strong promise, per client"), (3.0, "3 limited promise, per client"),
        (9.9, "9.9 weak promise, per client"), (10.1, "– no meaningful promise"),
    ],
)  # fmt: skip
def test_b3_an_epsilon_has_its_size_and_a_large_one_no_number(
    ask: RunMaker, screen: Screen, epsilon: float, shown: str
) -> None:
    run = ask("running")
    ask.tell(run, Spent(3, "server", epsilon, "user", "zero-out", 1e-5, "exact", "poisson"))
    assert f"ε, server {shown}" in lines(screen("runs"))[run]


def test_a_run_without_a_guarantee_has_no_finite_epsilon(store: Store, ask: RunMaker, screen: Screen) -> None:
    run = ask("running")
    ask.tell(run, Spent(3, "server", None, "user", "zero-out", 1e-5, "", "", reason="no noise"))
    assert "ε, server – no meaningful promise" in lines(screen("runs"))[run]


def test_without_runs_the_stored_examples_are_shown(screen: Screen) -> None:
    page = screen("runs")
    assert not page.exception and run_texts.NOTHING_YET in text(page) and not lines(page)


# --- filter and pages --------------------------------------------------------------------------------------


def test_a_filter_by_state_and_by_words(ask: RunMaker, screen: Screen) -> None:
    failed = ask("failed", 1)
    waiting = ask("queued", 2)
    finished = ask("finished", 3)
    page = screen("runs")
    page.pills(key="runs-states").set_value(["failed", "queued"]).run()
    assert set(lines(page)) == {failed, waiting}
    page.pills(key="runs-states").set_value([]).run()
    page.text_input(key="runs-find").set_value("SEED 3 udp").run()
    assert set(lines(page)) == {finished}
    page.text_input(key="runs-find").set_value(waiting[:7]).run()
    assert set(lines(page)) == {waiting}
    page.text_input(key="runs-find").set_value("unknown").run()
    assert not lines(page) and run_texts.NO_MATCH in text(page)


def test_many_runs_come_in_pages_and_are_read_once(
    ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest_first = [ask("finished", seed) for seed in range(60)][::-1]
    page = screen("runs")
    assert list(lines(page)) == newest_first[:25]
    read: list[str] = []
    bodies = Store.bodies

    def counted(store: Store, run: str, after: int = 0) -> list[tuple[int, dict[str, Any]]]:
        read.append(run)
        return bodies(store, run, after)

    monkeypatch.setattr(Store, "bodies", counted)
    page.run()
    assert read == []
    page.pagination[0].set_value(3).run()
    assert list(lines(page)) == newest_first[50:] == read


def test_the_list_is_shown_if_one_run_cannot_be_read(
    ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = ask("finished", 1)
    good = ask("finished", 2)
    bodies = Store.bodies

    def broken(store: Store, run: str, after: int = 0) -> list[tuple[int, dict[str, Any]]]:
        if run == bad:
            raise Damaged("an event cannot be read", "Delete the run")
        return bodies(store, run, after)

    monkeypatch.setattr(Store, "bodies", broken)
    shown = lines(screen("runs"))
    assert "an event cannot be read. Delete the run." in shown[bad] and "accuracy 20.2 %" in shown[good]


# --- live --------------------------------------------------------------------------------------------------


def test_new_events_of_a_run_are_shown(ask: RunMaker, screen: Screen) -> None:
    run = ask("running")
    other = ask("finished", 1)
    page = screen("runs")
    assert list(lines(page)) == [run, other] and run_texts.MOVING in text(page)
    ask.tell(run, Round(3, ROUNDS, 10), Measured(3, "accuracy", 0.456))
    assert "round 3 of 4" in lines(page.run())[run] and "accuracy 45.6 %" in lines(page)[run]
    ask.tell(run, Finished(3, 1.0))
    assert "state finished" in lines(page.run())[run] and run_texts.MOVING not in text(page)
    assert list(lines(page)) == [other, run]


def test_only_unfinished_runs_are_polled(ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("finished")
    intervals: list[float | None] = []
    fragment = streamlit.fragment

    def recorded(draw: Callable[..., None], *, run_every: float | None = None) -> Callable[..., None]:
        intervals.append(run_every)
        return fragment(draw, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", recorded)
    page = screen("runs")
    intervals.clear()
    page.run()
    assert intervals == []
    ask("queued", 1)
    page.run()
    assert len(intervals) == 1 and intervals[0]


# --- errors of the store -----------------------------------------------------------------------------------


def damage(home: Path) -> None:
    home.mkdir()
    (home / "leaklens.db").write_bytes(b"this is not a store" * 100)


def occupy(home: Path) -> None:
    home.write_text("a file", encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "remedy"), [(damage, "LeakLens then creates a new store"), (occupy, "LEAKLENS_HOME")]
)
def test_a_store_that_cannot_be_opened_is_one_sentence(
    home: Path, screen: Screen, spoil: Callable[[Path], None], remedy: str
) -> None:
    spoil(home)
    page = screen("runs")
    assert not page.exception and not lines(page)
    problem = text(page).partition('role="alert">')[2]
    assert str(home) in problem and remedy in problem and "Traceback" not in problem
    assert [button.key for button in page.button] == ["glossary", "again"]  # the first is in the header


@pytest.mark.parametrize(
    "error", [HomeFull("home: no space is left", "Delete runs"), Damaged("home: cannot be read", "Move it")]
)
def test_a_store_that_breaks_later_is_one_sentence(
    ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object) -> None:
        raise error

    run = ask("failed")
    page = screen("runs")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "submit", broken)
        press(page, "resume", run)
        assert str(error) in text(page) and "state failed" in lines(page)[run]
        patch.setattr(Store, "runs", broken)
        assert not page.run().exception
        assert str(error) in text(page) and not lines(page)
    assert run in lines(press(page, "again"))
