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

from app.texts import numbers
from engine.events import Event, Measured, Spent
from engine.results.report import report
from engine.specs.run import RunSpec
from engine.training.loop import run
from tests.app.browser.pages import LONG, LabPage
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
    lab = LabPage(page, server.address)
    began = time.monotonic()
    page.goto(f"{server.address}/lab")
    expect(lab.chart().locator(".main-svg").first).to_be_visible()
    seconds = time.monotonic() - began
    record_property("first chart, s", round(seconds, 2))
    expect(lab.says(re.compile(r"stored example, run on \d{4}-\d\d-\d\d"))).to_be_visible()
    assert re.fullmatch(r"[\d.]+ %", lab.accuracy)
    stored = lab.settled().run_id
    assert lab.exceptions.count() == 0 and lab.broken == []
    assert [url for url in requested if not url.startswith((server.address, "data:", "blob:"))] == []
    assert seconds < FIRST_CHART_S
    lab.button("Run it live").click()
    expect(lab.says("stored example")).to_be_hidden()
    with server.store() as store:
        assert store.status(stored) in ("queued", "running", "finished")  # the same run, on this machine


def test_watch_cancel_and_resume(lab: LabPage, server: Server, record_property) -> None:
    run_id = lab.visit(**LONG).ask()
    first = lab.watch()
    lab.look_closely()
    assert lab.watch(first) > first  # the page follows the run
    assert lab.faintest == 1.0  # no chart or box flickers
    began = time.monotonic()
    lab.button("Cancel").click()
    stopped = lab.stopped()
    seconds = time.monotonic() - began
    record_property("cancel, s", round(seconds, 2))
    with server.store() as store:
        assert store.status(run_id) == "cancelled"
    assert first <= stopped and seconds < ANSWER_S
    lab.button("Go on").click()
    assert lab.watch(stopped) > stopped  # after the round at which it stopped


def test_a_server_that_is_killed_during_a_run(lab: LabPage, server: Server) -> None:
    rounds = 150
    run_id = lab.visit(method="fedavg", rounds=rounds, seed=3).ask()
    server.reached(run_id, 1)
    server.kill()
    with server.store() as store:
        assert store.status(run_id) == "interrupted"
        spec = RunSpec(**store.run(run_id).spec)
    server.start()
    lab.page.reload()  # the run resumes by itself: someone wants it
    uninterrupted = report(run(spec, threads=1))["accuracy"]
    assert lab.finish(rounds) == numbers.percent(uninterrupted)
    assert report(events_of(server, run_id))["accuracy"] == uninterrupted


# --- a run that has ended ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A finished run of this server, in a tab that stays open."""

    lab: LabPage
    run: str
    events: dict[str, list[Event]]  # its own, then those of its baseline


@pytest.fixture(scope="module")
def ended(server: Server, regular: BrowserContext) -> Iterator[Ended]:
    lab = LabPage(regular.new_page(), server.address).visit(method="udp-fedavg", rounds=5, lr=0.05)
    run_id = lab.ask()
    lab.finish(5)
    events = {shown: events_of(server, shown) for shown in (run_id, *lab.link("twin"))}
    yield Ended(lab, run_id, events)
    lab.page.close()


def test_a_link_shows_the_same_to_another_visitor(ended: Ended, server: Server, stranger: BrowserContext) -> None:
    link = ended.lab.page.url
    other = LabPage(stranger.new_page(), server.address).visit(link)
    expect(other.chart()).to_be_visible()
    assert other.form() == ended.lab.form() and other.form()["lr"] == ["0.05"]
    assert other.accuracy == ended.lab.accuracy == numbers.percent(report(ended.events[ended.run])["accuracy"])
    assert other.page.url == link


def test_the_numbers_are_downloaded(ended: Ended) -> None:
    ended.lab.unfold(".st-key-csv")
    with ended.lab.page.expect_download() as download:
        ended.lab.button("Download CSV").click()
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
    ended.lab.unfold("button[data-save]")
    with ended.lab.page.expect_download() as drawing:
        ended.lab.saves("svg").first.click()
    root = ElementTree.fromstring(drawing.value.path().read_text(encoding="utf-8"))
    assert root.tag.endswith("}svg") and "accuracy on test data" in "".join(root.itertext())
    with ended.lab.page.expect_download() as picture:
        ended.lab.saves("png").first.click()
    with Image.open(picture.value.path()) as image:
        size = image.size
        colours = image.convert("RGB").getcolors(1 << 24)
    assert size[0] == pytest.approx(2 * float(root.get("width", 0)), abs=2)
    assert colours and len(colours) > 10  # lines, letters, paper


# --- several runs, several tabs ---------------------------------------------------------------------------------------


def test_pin_compare_and_go_back(lab: LabPage) -> None:
    first = lab.visit(method="fedavg", rounds=3, seed=7).ask()
    accuracy = lab.finish(3)
    lab.button("Pin").click()
    expect(lab.page).to_have_url(re.compile(f"pins={first}"))
    lab.type("rounds", 4)
    lab.ask()
    lab.finish(4)
    table = lab.compared
    assert [row["rounds"] for row in table] == ["4", "3"]
    assert {"seed", "method", "clients"}.isdisjoint(table[0])  # they are the same
    assert table[1]["accuracy"] == accuracy
    lab.page.go_back()  # before the second run
    lab.page.go_back()  # before its settings
    expect(lab.field("rounds")).to_have_value("3")
    assert lab.finish(3) == accuracy and lab.run_id == first


def test_back_and_forward(lab: LabPage) -> None:
    lab.visit(method="fedavg", rounds=11)
    lab.type("rounds", 12)
    lab.type("clients", 50)
    lab.page.go_back()
    expect(lab.field("clients")).to_have_value("100")
    expect(lab.field("rounds")).to_have_value("12")
    lab.page.go_back()
    expect(lab.field("rounds")).to_have_value("11")
    lab.page.go_forward()
    expect(lab.field("rounds")).to_have_value("12")
    expect(lab.page).to_have_url(re.compile("rounds=12"))


def test_two_tabs_of_one_visitor(
    lab: LabPage, server: Server, regular: BrowserContext, stranger: BrowserContext
) -> None:
    run = lab.visit(**LONG, seed=5).ask()
    with regular.new_page() as page:
        second_tab = LabPage(page, server.address).visit(lab.page.url)
        second_tab.watch()
        second_tab.type("rounds", 7)
        expect(lab.field("rounds")).to_have_value(str(LONG["rounds"]))  # each tab has its own form
        lab.button("Cancel").click()
        assert lab.stopped() and second_tab.stopped()  # both tabs belong to one visitor
    lab.button("Go on").click()
    with stranger.new_page() as page:
        other = LabPage(page, server.address).visit(lab.page.url)
        other.watch(1)
        other.button("Run").click()  # they request the same run
        other.watch(2)
        lab.button("Cancel").click()
        expect(lab.notice("Someone else requested 1 of these runs: it continues.")).to_be_visible()
        with server.store() as store:
            assert store.status(run) == "running"


# --- bad links and bad numbers ----------------------------------------------------------------------------------------


def test_a_link_with_only_invalid_values(lab: LabPage) -> None:
    lab.visit(f"{lab.address}/?rounds=abc&method=nonsense&format=99&run=deadbeef0000&wibble=1")
    for sentence in (
        "The link has rounds = abc. It must be a whole number between",
        "The link names the method nonsense.",
        "A newer LeakLens made this link",
        "The link has a setting wibble.",
        "a run that is not on this machine",
    ):
        expect(lab.notice(sentence)).to_be_visible()
    assert lab.exceptions.count() == 0
    lab.type("rounds", 99999999)
    expect(lab.notice("rounds: must be a whole number between 0 and 10000")).to_be_visible()
    expect(lab.button("Run")).to_be_disabled()
    lab.type("rounds", 3)
    expect(lab.notice("must be")).to_be_hidden()
    expect(lab.button("Run")).to_be_enabled()
    assert lab.exceptions.count() == 0


@pytest.mark.parametrize(
    ("query", "sentence"),
    [("target-epsilon=3", "view: is missing"), ("seed=-1", "seed: must be a whole number")],
)
def test_a_disabled_run_button_has_its_reason(lab: LabPage, query: str, sentence: str) -> None:
    lab.visit(f"{lab.address}/?{query}")
    expect(lab.button("Run")).to_be_disabled()
    expect(lab.notice(sentence)).to_be_visible()
