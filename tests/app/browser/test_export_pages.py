"""Exported grids and sweeps work from the disk, on paper and on a phone; the control Export reaches them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.export import page as export_page
from app.texts import product
from engine.examples import attacks, sweep
from engine.jobs.store import Store
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.pages import REDRAWN
from tests.app.browser.server import Server
from tests.app.browser.test_axe import SIDES, describe, findings

pytestmark = pytest.mark.slow

A4_PX = 687  # the width of A4 between its margins
WIDTHS = (1440, 390)
CUT = "() => [...document.images].filter(image => image.getBoundingClientRect().right > innerWidth).length"


@pytest.fixture(params=[attacks.NAME, sweep.NAME])
def opened(request: pytest.FixtureRequest, chromium: Browser, home: Path, tmp_path: Path) -> Iterator[Page]:
    """The page of an example in a browser without a network. A request or a script error fails the test."""
    store = Store(home)
    path = tmp_path / "page.html"
    path.write_text(export_page(store, request.param), encoding="utf-8")
    store.close()
    problems = list[str]()
    with chromium.new_context(offline=True) as profile:
        page = profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: problems.append(request.url))
        page.goto(path.as_uri())
        yield page
    assert [problem for problem in problems if not problem.startswith(("file:", "data:"))] == []


def test_the_page_has_no_serious_violation_in_both_themes(opened: Page, axe: str) -> None:
    for side in SIDES:
        for width in WIDTHS:
            opened.set_viewport_size({"width": width, "height": 900})
            opened.emulate_media(color_scheme=side)
            violations = findings(opened, axe)
            assert not violations, describe(violations)
            assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_nothing_is_cut(opened: Page) -> None:
    opened.emulate_media(media="print", color_scheme="dark")
    opened.set_viewport_size({"width": A4_PX, "height": 1000})
    assert opened.evaluate("document.documentElement.scrollWidth") <= A4_PX
    assert opened.evaluate(CUT) == 0
    assert opened.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


# --- slides ----------------------------------------------------------------------------------------------------------


def as_slides(page: Page, number: int = 1) -> Page:
    """Show the same file as slides."""
    page.goto(f"{page.url.partition('#')[0]}#slides-{number}")
    expect(page.locator("#slide-count")).to_have_text(re.compile(f"^{number} of "))
    return page


def shown_slides(page: Page) -> list[str | None]:
    return [slide.get_attribute("data-slide") for slide in page.locator("[data-slide]:visible").all()]


def test_the_arrow_keys_turn_the_slides(opened: Page) -> None:
    opened.get_by_role("button", name="Slides").click()
    count = opened.locator("#slide-count")
    many = opened.locator("[data-slide]").count()
    expect(count).to_have_text(f"1 of {many}")
    assert shown_slides(opened) == ["question"]
    for key, number in (("ArrowRight", 2), (" ", 3), ("Shift+ ", 2), ("End", many), ("ArrowRight", many), ("Home", 1)):
        opened.keyboard.press(key)
        expect(count).to_have_text(f"{number} of {many}")
    opened.keyboard.press("PageDown")
    expect(count).to_have_text(f"2 of {many}")
    assert shown_slides(opened) == ["answer"]
    opened.mouse.click(1200, 300)  # beside the content
    expect(count).to_have_text(f"3 of {many}")
    opened.keyboard.press("Escape")
    expect(count).to_be_hidden()
    expect(opened.locator(".slide-only:visible")).to_have_count(0)
    assert len(shown_slides(opened)) == many


def test_no_slide_is_wider_than_the_screen(opened: Page) -> None:
    for width in WIDTHS:
        opened.set_viewport_size({"width": width, "height": 844})
        for number in range(1, opened.locator("[data-slide]").count() + 1):
            as_slides(opened, number)
            slide = opened.locator(".current")
            assert slide.evaluate("slide => slide.scrollWidth <= slide.clientWidth"), (width, number)
            assert slide.inner_text().strip(), (width, number)
            tables = slide.locator(".grid:visible").all()
            assert all(table.evaluate("table => table.scrollWidth <= table.clientWidth") for table in tables)


def test_the_slides_have_no_serious_violation_in_both_themes(opened: Page, axe: str) -> None:
    for side in SIDES:
        opened.emulate_media(color_scheme=side)
        for number in range(1, opened.locator("[data-slide]").count() + 1):
            violations = findings(as_slides(opened, number), axe)
            assert not violations, describe(violations)


def test_printing_slides_prints_the_page(opened: Page) -> None:
    opened.emulate_media(media="print")
    page_text = opened.locator("body").inner_text()
    as_slides(opened, 2)
    assert opened.locator("body").inner_text() == page_text
    assert "It is not evidence that your system is safe." in page_text
    expect(opened.locator("#deck")).to_be_hidden()
    expect(opened.locator("#chooser")).to_be_hidden()
    expect(opened.locator("#values")).to_be_visible()


def test_a_choice_finds_the_nearest_stored_result(opened: Page) -> None:
    opened.get_by_label("Secure aggregation", exact=True).select_option("yes")
    opened.get_by_label("Noise is added").select_option("none")
    for name in ("Pictures per upload", "Local steps per upload"):
        opened.get_by_label(name).select_option("one")
    opened.get_by_label("The model that is attacked").select_option("first")
    nearest = opened.locator("#nearest")
    expect(nearest).to_contain_text("Nearest stored result: FedAvg: not recognised.")
    expect(nearest).to_contain_text("None of the six choices differs.")
    opened.get_by_label("The model that is attacked").select_option("later")
    expect(nearest).to_contain_text('Less leaks. The model that is attacked: "not trained yet" in the stored')
    expect(nearest).to_contain_text("arXiv:2404.05403")


# --- the control Export ----------------------------------------------------------------------------------------------


def open_export(page: Page) -> str:
    """Open the control by keyboard, and return the address of the page."""
    control = page.get_by_role("button", name=product.EXPORT, exact=True)
    expect(control).to_be_visible()
    page.wait_for_function(REDRAWN)
    control.focus()
    page.keyboard.press("Enter")
    link = page.get_by_role("link", name=product.EXPORT_PAGE)
    expect(link).to_be_visible()
    return str(link.get_attribute("href"))


def test_leak_saves_its_grid_as_a_page_and_as_a_png(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/leak")
    answer = page.request.get(f"{server.address}{open_export(page)}")
    assert answer.status == 200 and "attachment" in answer.headers["content-disposition"]
    assert answer.text().count("<img") > 3
    button = page.get_by_role("button", name=product.EXPORT_PNG)
    button.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    with Image.open(download.value.path()) as picture:
        assert picture.format == "PNG" and picture.width > 1000 and picture.height > 500
        assert len(picture.convert("RGB").getcolors(2**24) or ()) > 200  # the pictures are in it
        saved = io.BytesIO()
        picture.save(saved, "PNG")
    assert saved.tell() > 20_000


@pytest.mark.parametrize(("panel", "chart"), [("cliff", "cliff"), ("curves", "psnr")])
def test_leak_saves_the_data_of_its_charts(server: Server, stranger: BrowserContext, panel: str, chart: str) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/leak?closer={panel}")
    expect(page.locator(f".st-key-chart-{chart} .main-svg").first).to_be_visible()
    page.wait_for_function(REDRAWN)
    with page.expect_download() as download:
        page.locator(f"button[data-save=csv][data-chart={chart}]").click()
    assert download.value.suggested_filename == f"leaklens-{chart}.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert len(rows) > 5 and all(float(row["y"]) for row in rows if row["y"])


def test_trade_off_saves_its_sweep_for_the_observer(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/tradeoff")
    answer = page.request.get(f"{server.address}{open_export(page)}")
    assert answer.status == 200 and "seen by the server" in answer.text() and "204 runs finished." in answer.text()
    slides = page.get_by_role("link", name=product.EXPORT_SLIDES, exact=True).get_attribute("href")
    assert 'data-opens="slides"' in page.request.get(f"{server.address}{slides}").text()


def test_an_unknown_export_names_the_screen(server: Server, stranger: BrowserContext) -> None:
    answer = stranger.request.get(f"{server.address}/export/run/unknown.html")
    assert answer.status == 404 and "Open Runs" in answer.text() and "python3" not in answer.text()
