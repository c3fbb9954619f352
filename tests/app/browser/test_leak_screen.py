"""The Leak screen in a real browser: a picture of one's own, attacked, scrubbed and wiped by keyboard, and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.texts import attacks as attack_texts
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.pages import REDRAWN
from tests.app.browser.server import Server
from tests.engine.jobs.makers import photo, saved

pytestmark = pytest.mark.slow

SMALL = {"against": "none,udp-fedavg:0.1", "attacks": "map,inverting-gradients", "iterations": "40"}


PLACES = count(20)  # each test asks about a picture of its own


@pytest.fixture
def leak(server: Server, stranger: BrowserContext) -> Iterator[Page]:
    """The Leak screen in a new tab, where no script may break."""
    page, broken = stranger.new_page(), list[str]()
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(f"{server.address}/?{urlencode({**SMALL, 'whose': f'test-{next(PLACES)}'})}")
    expect(page.locator(".st-key-leak-attack button")).to_be_visible()
    yield page
    page.close()
    assert broken == []


def cells(page: Page) -> Locator:
    return page.locator("tr.attack td:not(.apart)")


def attacked(page: Page) -> None:
    """Press Attack, and wait for the scrubber."""
    page.locator(".st-key-leak-attack button").click()
    expect(page.get_by_role("slider", name=attack_texts.KEYS["scrub"])).to_be_visible(timeout=3 * PATIENCE_MS)
    page.wait_for_function(REDRAWN)


def test_the_first_page_is_this_one(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(server.address)
    expect(page.get_by_role("heading", name=attack_texts.PROMISE)).to_be_visible()
    expect(page.get_by_role("img", name=attack_texts.ORIGINAL_ALT).first).to_be_visible()


def test_from_here_to_the_lab_and_back(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(server.address)
    expect(page.locator(".st-key-leak-live button, .st-key-leak-attack button").first).to_be_visible()
    page.get_by_role("link", name="Lab", exact=True).click()
    expect(page.locator(".st-key-run button")).to_be_visible()
    page.wait_for_function(REDRAWN)
    expect(page).to_have_url(re.compile("/lab"))
    page.get_by_role("link", name="Leak", exact=True).click()
    expect(page.get_by_role("heading", name=attack_texts.PROMISE)).to_be_visible()


def test_an_old_link_reaches_the_lab(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/?method=udp-fedavg&rounds=7")
    expect(page.locator(".st-key-w-rounds input")).to_have_value("7")


def test_pictures_form_and_the_scrubber_goes_back(leak: Page) -> None:
    attacked(leak)
    first = cells(leak).first
    end, last = first.locator("b").inner_text(), first.locator("img").get_attribute("src")
    scrub = leak.get_by_role("slider", name=attack_texts.KEYS["scrub"])
    scrub.focus()
    leak.keyboard.press("Home")
    expect(first.locator("b")).not_to_have_text(end)
    assert first.locator("img").get_attribute("src") != last
    assert "iteration 0" in (scrub.get_attribute("aria-valuetext") or "")
    leak.keyboard.press("End")
    expect(first.locator("b")).to_have_text(end)
    leak.get_by_role("button", name=attack_texts.KEYS["step"]).click()  # this visitor asked for little movement
    expect(first.locator("b")).not_to_have_text(end)


def test_one_picture_is_laid_over_the_original(leak: Page) -> None:
    attacked(leak)
    cells(leak).nth(1).get_by_role("button").click()
    expect(leak.locator("figcaption")).to_contain_text("noise 0.1")
    wipe = leak.get_by_role("slider", name=attack_texts.KEYS["wipe"])
    wipe.focus()
    leak.keyboard.press("Home")
    assert "100%" in leak.locator("img.over").evaluate("one => one.style.clipPath")


def test_a_grid_drawn_anew_keeps_what_was_chosen(leak: Page) -> None:
    attacked(leak)
    cells(leak).nth(1).get_by_role("button").click()
    leak.get_by_role("link", name="Lab", exact=True).click()
    expect(leak.locator(".st-key-run button")).to_be_visible()
    leak.wait_for_function(REDRAWN)
    leak.get_by_role("link", name="Leak", exact=True).click()
    expect(leak.locator("figcaption")).to_contain_text("noise 0.1")


def test_a_picture_of_ones_own(leak: Page, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "mine.png"
    file.write_bytes(saved(photo(60, 60), "PNG"))
    leak.get_by_role("button", name=attack_texts.OWN).click()
    leak.locator("input[type=file]").set_input_files(file)
    expect(leak.get_by_role("button", name="your own picture, chosen")).to_be_attached()
    leak.keyboard.press("Escape")
    attacked(leak)
    expect(leak.locator("img[alt*='no protection']").first).to_be_visible()
    leak.get_by_role("button", name=attack_texts.DELETE).click()
    expect(leak.get_by_text("4 attacks on it are gone")).to_be_visible()
    with server.store() as store:
        assert not [row for row in store.runs() if str(row.spec.get("pictures", "")).count("own-")]
