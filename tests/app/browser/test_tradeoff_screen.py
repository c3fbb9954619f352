"""The Trade-off screen in a real browser: a sweep runs, is cancelled, resumes after a kill, and opens in Try."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.texts import product
from app.texts import sweep as sweep_texts
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.pages import REDRAWN, TryPage
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow

SMALL = {
    "methods": "udp-fedavg,ppsgd", "noises": "0.5, 1, 2", "steps": "", "seeds": 2, "eyes": "outsider",
    "plain": "false", "clients": 40, "sampled": 8, "sampling": "poisson", "rounds": 8,
}  # fmt: skip
LONG = {**SMALL, "rounds": 24, "clients": 60, "sampled": 12}
SEEDS = count(100, 10)  # each test runs its own seeds


@pytest.fixture
def page(server: Server, stranger: BrowserContext) -> Iterator[Page]:
    """A new tab. A script error fails the test."""
    page = stranger.new_page()
    script_errors = list[str]()
    page.on("pageerror", lambda error: script_errors.append(str(error)))
    yield page
    page.close()
    assert script_errors == []


def visit(page: Page, server: Server, **settings: object) -> Page:
    page.goto(f"{server.address}/tradeoff?{urlencode(settings)}")
    return settled(page)


def settled(page: Page) -> Page:
    expect(button(page, "run")).to_be_visible()
    page.wait_for_function(REDRAWN)
    return page


def button(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-tradeoff-{name} button")


def chart(page: Page, title: str) -> Locator:
    return page.get_by_role("figure", name=re.compile(f"^{title}"))


def wait_for_points(page: Page, least: int) -> None:
    """Wait until at least this many of the twelve points are finished."""
    enough = "least => Number(/(\\d+) of 12 runs/.exec(document.body.innerText)?.[1]) >= least"
    page.wait_for_function(enough, arg=least, timeout=2 * PATIENCE_MS)


def wait_for_all(page: Page) -> None:
    expect(page.get_by_text("12 runs, and all of them have finished.")).to_be_visible(timeout=4 * PATIENCE_MS)
    expect(page.get_by_text(sweep_texts.CHOOSE)).to_be_visible()


def test_a_first_visit_shows_a_finished_frontier(server: Server, page: Page) -> None:
    page.goto(f"{server.address}/leak")
    page.get_by_role("link", name=product.TRADEOFF, exact=True).click()
    expect(page.get_by_role("heading", name=sweep_texts.PROMISE)).to_be_visible()
    expect(chart(page, sweep_texts.BY_EPSILON)).to_be_visible()
    page.get_by_role("radio", name="by noise").click()
    expect(chart(page, sweep_texts.BY_NOISE)).to_be_visible()
    page.get_by_role("radio", name="by ε").click()
    expect(button(page, "live")).to_be_visible()


def test_a_cancelled_sweep_resumes_after_a_reload(server: Server, page: Page) -> None:
    visit(page, server, **LONG, seed=next(SEEDS))
    button(page, "run").click()
    wait_for_points(page, 1)
    expect(chart(page, sweep_texts.BY_EPSILON)).to_be_visible()
    button(page, "cancel").click()
    expect(button(page, "go-on")).to_be_visible()
    page.reload()
    settled(page)
    expect(page.get_by_text("runs have finished. Their results stay.")).to_be_visible()
    with server.store() as store:
        attempts = {row.id: row.attempt for row in store.runs() if row.status == "finished"}
    button(page, "go-on").click()
    wait_for_all(page)
    with server.store() as store:
        assert attempts and {row.id: row.attempt for row in store.runs() if row.id in attempts} == attempts


@pytest.mark.long  # Try tests the same kill in the suite
def test_a_killed_server_loses_no_result(server: Server, page: Page) -> None:
    visit(page, server, **LONG, seed=next(SEEDS))
    button(page, "run").click()
    wait_for_points(page, 2)
    link = page.url
    server.kill()
    server.start()
    page.goto(link)
    settled(page)
    expect(chart(page, sweep_texts.BY_EPSILON)).to_be_visible()
    # queued runs continue, interrupted runs wait for a click
    expect(button(page, "go-on").or_(page.get_by_text("12 runs, and all"))).to_be_visible(timeout=4 * PATIENCE_MS)
    if button(page, "go-on").count():
        button(page, "go-on").click()
    wait_for_all(page)


def test_a_point_opens_its_runs_in_the_lab_and_the_lab_links_back(server: Server, page: Page) -> None:
    visit(page, server, **SMALL, seed=next(SEEDS))
    button(page, "run").click()
    wait_for_all(page)
    page.wait_for_function(REDRAWN)
    link = page.url
    points = page.locator(".st-key-chart-tradeoff-epsilon-user .scatterlayer .points path")
    expect(points).to_have_count(6)
    points.first.scroll_into_view_if_needed()
    box = points.first.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # a layer of Plotly receives the click
    expect(button(page, "open")).to_be_visible()
    description = page.locator(".st-key-tradeoff-one").inner_text()
    assert description.startswith("UDP-FedAvg, noise ")
    assert "seen by an outsider" in description and "An observer who" in description
    button(page, "open").click()
    opened = TryPage(page, server.address).settled()
    assert opened.link("seeds") == ["2"]
    with server.store() as store:
        assert store.status(opened.run_id) == "finished"
    page.get_by_role("button", name=sweep_texts.FROM_TRY, exact=True).click()
    expect(page.get_by_role("heading", name=sweep_texts.PROMISE)).to_be_visible()
    settled(page)
    before = parse_qs(urlsplit(link).query)
    after = parse_qs(urlsplit(page.url).query)
    assert all(after[name] == before[name] for name in ("methods", "noises", "rounds", "clients", "seed", "seeds"))


def test_a_refused_number_is_reported_at_its_field_by_keyboard(server: Server, page: Page) -> None:
    visit(page, server)
    field = page.locator(".st-key-tradeoff-noises input")
    field.fill("0.5, loud")
    field.press("Tab")
    expect(page.get_by_role("alert").filter(has_text="got loud")).to_be_visible()
    expect(field).to_have_value("0.5, loud")
    expect(page).to_have_url(re.compile(r"noises=0\.5%2C\+loud(&|$)"))
    expect(chart(page, sweep_texts.BY_EPSILON)).to_be_visible()  # the last valid settings
    field.fill("0.5, 1")
    field.press("Tab")
    expect(page.get_by_role("alert").filter(has_text="got loud")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"noises=0\.5%2C\+1(&|$)"))
    page.go_back()
    expect(field).to_have_value("0.5, loud")
