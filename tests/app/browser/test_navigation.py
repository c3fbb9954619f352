"""The way between the screens: their addresses, their titles, and Back in the browser."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from app.session.screens import SCREENS, Screen
from app.texts import privacy, product
from tests.app.browser.pages import REDRAWN, SAID
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow


def drawn(page: Page, title: str) -> None:
    """Wait until a screen is drawn and has written its address."""
    expect(page).to_have_title(f"{title} · LeakLens")
    page.wait_for_function(REDRAWN)
    page.wait_for_timeout(300)


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_b22_b38_a_direct_visit_has_a_title_and_asks_for_nothing_that_is_missing(
    stranger: BrowserContext, server: Server, screen: Screen
) -> None:
    page = stranger.new_page()
    missing: list[str] = []
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.goto(f"{server.address}/{'' if screen is SCREENS[0] else screen.name}")
    drawn(page, screen.title)
    assert not missing


def open_by_menu(page: Page, title: str) -> None:
    """Open a screen by the bar, or by the list More."""
    link = page.get_by_role("link", name=title, exact=True)
    if not link.is_visible():
        page.get_by_role("button", name=product.MORE, exact=True).click()
    link.click()
    drawn(page, title)


def test_b22_back_opens_the_screen_before_with_its_settings(stranger: BrowserContext, server: Server) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/try?method=fedavg&rounds=7")
    drawn(page, "Try")
    for title in ("Trade-off", "Runs and machine", "Leak", "Try", "Runs and machine"):
        open_by_menu(page, title)
    for title in ("Try", "Leak", "Runs and machine", "Trade-off", "Try"):
        page.go_back()
        drawn(page, title)
        assert "does not know" not in " ".join(page.locator(SAID).all_text_contents())
        if title == "Try":
            expect(page).to_have_url(re.compile("rounds=7"))


def choose_observer(page: Page, who: str) -> None:
    """Choose in the header who must not learn it."""
    page.get_by_role("combobox", name=privacy.HEADER).click()
    page.get_by_role("option", name=who).click()


def test_one_observer_is_obeyed_by_every_screen_and_is_in_the_address(stranger: BrowserContext, server: Server) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/runs")
    drawn(page, "Runs and machine")
    choose_observer(page, "another participant")
    expect(page).to_have_url(re.compile("eyes=client"))
    expect(page.get_by_text("ε, participant").first).to_be_visible()
    for title in ("Leak", "Try", "Trade-off", "LeakLens"):
        page.get_by_role("link", name=title, exact=True).first.click()
        drawn(page, "Start" if title == "LeakLens" else title)
        expect(page).to_have_url(re.compile("eyes=client"))
        expect(page.get_by_role("combobox", name=privacy.HEADER)).to_have_value("another participant")
    page.go_back()
    choose_observer(page, "the server")
    expect(page).to_have_url(re.compile("eyes=server"))
    page.go_back()
    expect(page).to_have_url(re.compile("eyes=client"))
    expect(page.get_by_role("combobox", name=privacy.HEADER)).to_have_value("another participant")


@pytest.mark.parametrize("side", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_b43_b32_the_product_is_named_and_the_focus_is_seen(
    stranger: BrowserContext, server: Server, side: Literal["light", "dark"], width: int, height: int
) -> None:
    page = stranger.new_page()
    page.emulate_media(color_scheme=side)
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server.address}/runs")
    drawn(page, "Runs and machine")
    for name in ("LeakLens", "Leak", "Trade-off"):
        link = page.get_by_role("link", name=name, exact=True)
        expect(link).to_be_in_viewport(ratio=1)
        link.focus()
        assert "solid 2px" in link.evaluate("link => getComputedStyle(link).outline")
    expect(page.get_by_role("combobox", name=privacy.HEADER)).to_be_in_viewport(ratio=1)
    page.get_by_role("link", name="LeakLens", exact=True).click()
    drawn(page, "Start")


LABEL = "box => getComputedStyle(box, '::before').content"


@pytest.mark.parametrize(("width", "label"), [(1440, "none"), (800, f'"{privacy.SHORT_HEADER}"'), (390, "none")])
def test_the_select_of_the_header_has_a_short_label_where_there_is_room(
    stranger: BrowserContext, server: Server, width: int, label: str
) -> None:
    page = stranger.new_page()
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{server.address}/runs")
    drawn(page, "Runs and machine")
    box = page.locator(".st-key-observer [data-testid=stSelectbox]")
    assert box.evaluate(LABEL) == label
    if width == 800:
        screens, observer = (page.locator(f".st-key-{name}").bounding_box() for name in ("screens", "observer"))
        assert screens and observer and screens["x"] + screens["width"] < observer["x"]
        assert observer["x"] + observer["width"] <= width
