"""Journeys through the dashboard, from a first visit to a server that is killed during a run."""

from __future__ import annotations

import csv
import io
import re
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from PIL import Image
from playwright.sync_api import BrowserContext, expect

from app.screens.try_it.details import texts as details_texts
from app.texts import numbers
from engine.events import Event, Measured, Spent
from engine.results.report import report
from engine.specs import attack_grid
from engine.specs.run import RunSpec
from engine.training.loop import run
from tests.app.browser.pages import LONG, TryPage
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow

FIRST_CHART_S = 20.0  # far more than the first chart takes
ANSWER_S = 5.0  # after a click on Cancel; an idle machine takes 1 s


def events_of(server: Server, run_id: str) -> list[Event]:
    with server.store() as store:
        return [event for _, event in store.events(run_id)]


# --- a first visit, and one run ---------------------------------------------------------------------------------------


def test_a_first_visit(server: Server, stranger: BrowserContext, record_property) -> None:
    page = stranger.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    tab = TryPage(page, server.address)
    began = time.monotonic()
    page.goto(f"{server.address}/try")
    expect(tab.chart().locator(".main-svg").first).to_be_visible()
    seconds = time.monotonic() - began
    record_property("first chart, s", round(seconds, 2))
    expect(page.get_by_text(re.compile(r"stored example, run on \d{4}-\d\d-\d\d"))).to_be_visible()
    assert re.fullmatch(r"[\d.]+ %", tab.accuracy) and tab.pictures.count() == 2
    stored = tab.settled().run_id
    assert tab.exceptions.count() == 0 and tab.broken == []
    assert [url for url in requested if not url.startswith((server.address, "data:", "blob:"))] == []
    assert seconds < FIRST_CHART_S
    tab.button("Run it live").click()
    expect(page.get_by_text("stored example")).to_be_hidden()
    with server.store() as store:
        assert store.status(stored) in ("queued", "running", "finished")  # the same run, on this machine


def test_watch_cancel_and_resume(tab: TryPage, server: Server, record_property) -> None:
    run_id = tab.visit(**LONG).ask()
    first = tab.watch()
    tab.look_closely()
    assert tab.watch(first) > first  # the page follows the run
    assert tab.faintest == 1.0  # no chart or box flickers
    began = time.monotonic()
    tab.button("Cancel").click()
    stopped = tab.stopped()
    seconds = time.monotonic() - began
    record_property("cancel, s", round(seconds, 2))
    with server.store() as store:
        assert store.status(run_id) == "cancelled"
    assert first <= stopped and seconds < ANSWER_S
    tab.button("Go on").click()
    assert tab.watch(stopped) > stopped  # after the round at which it stopped


def test_a_server_that_is_killed_during_a_run(tab: TryPage, server: Server) -> None:
    rounds = 150
    run_id = tab.visit(method="fedavg", rounds=rounds, seed=3, attacks="analytic").ask()
    server.reached(run_id, 1)
    server.kill()
    with server.store() as store:
        assert store.status(run_id) == "interrupted"
        spec = RunSpec(**store.run(run_id).spec)
    server.start()
    tab.page.reload()  # the run resumes by itself: someone wants it
    uninterrupted = report(run(spec, threads=1))["accuracy"]
    assert tab.finish() == numbers.percent(uninterrupted)
    assert report(events_of(server, run_id))["accuracy"] == uninterrupted


# --- a run that has ended ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A finished run of this server, in a tab that stays open."""

    tab: TryPage
    run: str
    events: dict[str, list[Event]]  # its own, then those of its baseline


@pytest.fixture(scope="module")
def ended(server: Server, regular: BrowserContext) -> Iterator[Ended]:
    tab = TryPage(regular.new_page(), server.address).visit(
        method="udp-fedavg", rounds=5, lr=0.05, attacks="analytic", closer="take"
    )
    run_id = tab.ask()
    tab.finish()
    baseline = attack_grid.baseline_of(tab.spec)
    assert baseline
    events = {shown: events_of(server, shown) for shown in (run_id, baseline.id)}
    yield Ended(tab, run_id, events)
    tab.page.close()


def test_a_link_shows_the_same_to_another_visitor(ended: Ended, server: Server, stranger: BrowserContext) -> None:
    link = ended.tab.page.url
    other = TryPage(stranger.new_page(), server.address).visit(link)
    expect(other.chart()).to_be_visible()
    assert other.form() == ended.tab.form() and other.form()["lr"] == ["0.05"]
    assert other.accuracy == ended.tab.accuracy == numbers.percent(report(ended.events[ended.run])["accuracy"])
    assert other.page.url == link


def test_the_numbers_are_downloaded(ended: Ended) -> None:
    with ended.tab.page.expect_download() as download:
        ended.tab.button(details_texts.CSV).click()
    assert download.value.suggested_filename == f"leaklens-{ended.run}.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    downloaded = [tuple(row[name] for name in ("run", "round", "name", "who", "value")) for row in rows]
    expected = []
    for run_id, events in ended.events.items():
        for event in events:
            if isinstance(event, Measured):
                expected.append((run_id, str(event.round), event.name, event.who, _written(event.value)))
            elif isinstance(event, Spent):
                expected.append((run_id, str(event.round), "epsilon", event.view, _written(event.epsilon)))
    assert downloaded == expected
    assert {row[2] for row in downloaded} >= {"accuracy", "epsilon"}


def _written(value: float | None) -> str:
    return "" if value is None else str(value)


def test_a_chart_is_downloaded_as_a_picture(ended: Ended) -> None:
    with ended.tab.page.expect_download() as drawing:
        ended.tab.saves("svg").first.click()
    root = ElementTree.fromstring(drawing.value.path().read_text(encoding="utf-8"))
    assert root.tag.endswith("}svg") and "accuracy on test data" in "".join(root.itertext())
    with ended.tab.page.expect_download() as picture:
        ended.tab.saves("png").first.click()
    with Image.open(picture.value.path()) as image:
        size = image.size
        colours = image.convert("RGB").getcolors(1 << 24)
    assert size[0] == pytest.approx(2 * float(root.get("width", 0)), abs=2)
    assert colours and len(colours) > 10  # lines, letters, paper


# --- several runs, several tabs ---------------------------------------------------------------------------------------


def test_pin_compare_and_go_back(tab: TryPage) -> None:
    first = tab.visit(method="fedavg", rounds=3, seed=7, attacks="analytic", closer="table").ask()
    accuracy = tab.finish()
    tab.button("Pin").click()
    expect(tab.page).to_have_url(re.compile(f"pins={first}"))
    tab.type("rounds", 4)
    tab.ask()
    tab.finish()
    table = tab.compared
    assert [row["rounds"] for row in table] == ["4", "3"]
    assert {"seed", "method", "clients"}.isdisjoint(table[0])  # they are the same
    assert table[1]["accuracy"] == accuracy
    tab.page.go_back()  # before its settings
    expect(tab.field("rounds")).to_have_value("3")
    assert tab.finish() == accuracy and tab.run_id == first


def test_back_and_forward(tab: TryPage) -> None:
    tab.visit(method="fedavg", rounds=11)
    tab.type("rounds", 12)
    tab.type("clients", 50)
    tab.page.go_back()
    expect(tab.field("clients")).to_have_value("100")
    expect(tab.field("rounds")).to_have_value("12")
    tab.page.go_back()
    expect(tab.field("rounds")).to_have_value("11")
    tab.page.go_forward()
    expect(tab.field("rounds")).to_have_value("12")
    expect(tab.page).to_have_url(re.compile("rounds=12"))


def test_two_tabs_of_one_visitor(
    tab: TryPage, server: Server, regular: BrowserContext, stranger: BrowserContext
) -> None:
    run = tab.visit(**LONG, seed=5).ask()
    with regular.new_page() as page:
        second_tab = TryPage(page, server.address).visit(tab.page.url)
        second_tab.watch()
        second_tab.type("rounds", 7)
        assert tab.link("rounds") == [str(LONG["rounds"])]  # each tab has its own form
        tab.button("Cancel").click()
        assert tab.stopped()  # both tabs belong to one visitor
    tab.button("Go on").click()
    with stranger.new_page() as page:
        other = TryPage(page, server.address).visit(tab.page.url)
        other.watch(1)
        other.button("Request these, too").click()  # they request the same run
        other.watch(2)
        tab.button("Cancel").click()
        expect(tab.notice("Someone else requested 2 of these runs and attacks: they continue.")).to_be_visible()
        with server.store() as store:
            assert store.status(run) == "running"


# --- bad links and bad numbers ----------------------------------------------------------------------------------------


def test_a_link_with_only_invalid_values(tab: TryPage) -> None:
    tab.visit(f"{tab.address}/?rounds=abc&method=nonsense&format=99&run=deadbeef0000&wibble=1")
    for sentence in (
        "The link has rounds = abc. It must be a whole number between",
        "The link names the method nonsense.",
        "A newer LeakLens made this link",
        "The link has a setting wibble.",
        "a run that is not on this machine",
    ):
        expect(tab.notice(sentence)).to_be_visible()
    assert tab.exceptions.count() == 0
    tab.type("rounds", 99999999)
    expect(tab.notice("rounds: must be a whole number between 0 and 10000")).to_be_visible()
    expect(tab.button("Run")).to_be_disabled()
    tab.type("rounds", 3)
    expect(tab.notice("must be")).to_be_hidden()
    expect(tab.button("Run")).to_be_enabled()
    assert tab.exceptions.count() == 0


@pytest.mark.parametrize(
    ("query", "sentence"),
    [("target-epsilon=3", "view: is missing"), ("seed=-1", "seed: must be a whole number")],
)
def test_a_disabled_run_button_has_its_reason(tab: TryPage, query: str, sentence: str) -> None:
    tab.visit(f"{tab.address}/?{query}")
    expect(tab.button("Run")).to_be_disabled()
    expect(tab.notice(sentence)).to_be_visible()
