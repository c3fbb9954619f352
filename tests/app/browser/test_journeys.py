"""What people do with the dashboard, from the first visit to a server that dies in the middle of a run."""

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

FIRST_CHART_S = 20.0  # far more than it takes, and less than broken
ANSWER_S = 5.0  # to a click on Cancel; a machine that does nothing else needs one


def told(server: Server, run_id: str) -> list[Event]:
    with server.store() as store:
        return [event for _, event in store.events(run_id)]


# --- a first visit, and one run ---------------------------------------------------------------------------------------


def test_a_first_visit(server: Server, stranger: BrowserContext, record_property) -> None:
    page, asked = stranger.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
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
    assert [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []
    assert seconds < FIRST_CHART_S
    lab.button("Run it live").click()
    expect(lab.says("stored example")).to_be_hidden()
    with server.store() as store:
        assert store.status(stored) in ("queued", "running", "finished")  # the same question, asked here


def test_watch_cancel_and_go_on(lab: LabPage, server: Server, record_property) -> None:
    asked = lab.visit(**LONG).ask()
    first = lab.watch()
    lab.look_closely()
    assert lab.watch(first) > first  # it moves by itself
    assert lab.faintest == 1.0  # and nothing on the page flickers
    began = time.monotonic()
    lab.button("Cancel").click()
    stopped = lab.stopped()
    seconds = time.monotonic() - began
    record_property("cancel, s", round(seconds, 2))
    with server.store() as store:
        assert store.status(asked) == "cancelled"
    assert first <= stopped and seconds < ANSWER_S
    lab.button("Go on").click()
    assert lab.watch(stopped) > stopped  # from where it stopped


def test_a_server_that_dies_in_the_middle(lab: LabPage, server: Server) -> None:
    rounds = 150
    asked = lab.visit(method="fedavg", rounds=rounds, seed=3).ask()
    server.reached(asked, 1)
    server.kill()
    with server.store() as store:
        assert store.status(asked) == "interrupted"
        spec = RunSpec(**store.run(asked).spec)
    server.start()
    lab.page.reload()
    assert lab.stopped() < rounds
    lab.button("Go on").click()
    undisturbed = report(run(spec, threads=1))["accuracy"]
    assert lab.finish(rounds) == numbers.percent(undisturbed)
    assert report(told(server, asked))["accuracy"] == undisturbed


# --- a run that has ended ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A run of this server that is over, in a tab that stays open."""

    lab: LabPage
    run: str
    events: dict[str, list[Event]]  # its own, then its twin's


@pytest.fixture(scope="module")
def ended(server: Server, regular: BrowserContext) -> Iterator[Ended]:
    lab = LabPage(regular.new_page(), server.address).visit(method="udp-fedavg", rounds=5, lr=0.05)
    asked = lab.ask()
    lab.finish(5)
    yield Ended(lab, asked, {one: told(server, one) for one in (asked, *lab.link("twin"))})
    lab.page.close()


def test_a_link_shows_the_same_to_somebody_else(ended: Ended, server: Server, stranger: BrowserContext) -> None:
    link = ended.lab.page.url
    other = LabPage(stranger.new_page(), server.address).visit(link)
    expect(other.chart()).to_be_visible()
    assert other.form() == ended.lab.form() and other.form()["lr"] == ["0.05"]
    assert other.accuracy == ended.lab.accuracy == numbers.percent(report(ended.events[ended.run])["accuracy"])
    assert other.page.url == link


def test_the_numbers_are_taken_away(ended: Ended) -> None:
    ended.lab.unfold(".st-key-csv")
    with ended.lab.page.expect_download() as download:
        ended.lab.button("Download CSV").click()
    assert download.value.suggested_filename == f"leaklens-{ended.run}.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    here = [tuple(row[name] for name in ("run", "round", "name", "who", "value")) for row in rows]
    there = []
    for one, events in ended.events.items():
        for event in events:
            if isinstance(event, Measured):
                there.append((one, str(event.round), event.name, event.who, _written(event.value)))
            elif isinstance(event, Spent):
                there.append((one, str(event.round), "epsilon", event.view, _written(event.epsilon)))
    assert here == there
    assert {row[2] for row in here} >= {"accuracy", "epsilon"}


def _written(value: float | None) -> str:
    return "" if value is None else str(value)


def test_a_chart_is_taken_away_as_a_picture(ended: Ended) -> None:
    ended.lab.unfold("button[data-save]")
    with ended.lab.page.expect_download() as drawing:
        ended.lab.saves("svg").first.click()
    root = ElementTree.fromstring(drawing.value.path().read_text(encoding="utf-8"))
    assert root.tag.endswith("}svg") and "accuracy on test data" in "".join(root.itertext())
    with ended.lab.page.expect_download() as picture:
        ended.lab.saves("png").first.click()
    with Image.open(picture.value.path()) as image:
        size, colours = image.size, image.convert("RGB").getcolors(1 << 24)
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


def test_two_tabs_of_one_person(
    lab: LabPage, server: Server, regular: BrowserContext, stranger: BrowserContext
) -> None:
    run = lab.visit(**LONG, seed=5).ask()
    with regular.new_page() as page:
        two = LabPage(page, server.address).visit(lab.page.url)
        two.watch()
        two.type("rounds", 7)
        expect(lab.field("rounds")).to_have_value(str(LONG["rounds"]))  # each tab has its own form
        lab.button("Cancel").click()
        assert lab.stopped() and two.stopped()  # another tab of the same person is no other person
    lab.button("Go on").click()
    with stranger.new_page() as page:
        other = LabPage(page, server.address).visit(lab.page.url)
        other.watch(1)
        lab.button("Cancel").click()
        expect(lab.notice("Someone else asked for 1 of these runs or watches it: it goes on.")).to_be_visible()
        with server.store() as store:
            assert store.status(run) == "running"


# --- bad links and bad numbers ----------------------------------------------------------------------------------------


def test_a_link_in_which_nothing_is_right(lab: LabPage) -> None:
    lab.visit(f"{lab.address}/?rounds=abc&method=nonsense&format=99&run=deadbeef0000&wibble=1")
    for sentence in (
        "rounds = abc cannot be meant",
        "There is no method nonsense",
        "made by a newer LeakLens",
        "knows no setting wibble",
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
def test_a_run_button_that_rests_says_why(lab: LabPage, query: str, sentence: str) -> None:
    lab.visit(f"{lab.address}/?{query}")
    expect(lab.button("Run")).to_be_disabled()
    expect(lab.notice(sentence)).to_be_visible()
