"""The way between the screens: their addresses, their titles, and Back in the browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from app.session.screens import SCREENS, Screen
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


def test_b22_back_opens_the_screen_before_with_its_settings(stranger: BrowserContext, server: Server) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/lab?method=fedavg&rounds=7")
    drawn(page, "Lab")
    for title in ("Trade-off", "Runs and machine", "Leak", "Lab", "Runs and machine"):
        page.get_by_role("link", name=title, exact=True).click()
        drawn(page, title)
    for title in ("Lab", "Leak", "Runs and machine", "Trade-off", "Lab"):
        page.go_back()
        drawn(page, title)
        assert "does not know" not in " ".join(page.locator(SAID).all_text_contents())
        if title == "Lab":
            expect(page).to_have_url(re.compile("rounds=7"))
            expect(page.locator(".st-key-w-rounds input")).to_have_value("7")
