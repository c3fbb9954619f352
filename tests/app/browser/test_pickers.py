"""A protection is chosen in the drawer and an attacker by three answers, by keyboard and by mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.texts import attackers, protections
from tests.app.browser.pages import REDRAWN
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow

START = "/?against=none,udp-fedavg:0.1&attacks=analytic"


def opened(server: Server, profile: BrowserContext, width: int = 1440) -> Page:
    """Leak with one attack that answers at once."""
    page = profile.new_page()
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{server.address}{START}")
    expect(page.locator(".st-key-leak-method button")).to_be_visible()
    page.wait_for_function(REDRAWN)
    return page


def drawer(page: Page) -> Locator:
    page.locator(".st-key-leak-method button").click()
    box = page.get_by_role("dialog", name=protections.TITLE)
    expect(box.get_by_role("combobox", name=protections.FIND)).to_be_visible()
    return box


def test_typing_finds_a_protection_and_the_columns_change(server: Server, stranger: BrowserContext) -> None:
    page = opened(server, stranger)
    box = drawer(page)
    box.get_by_role("combobox", name=protections.FIND).fill("fedceo")
    page.keyboard.press("Enter")
    expect(box).to_be_hidden()
    expect(page).to_have_url(re.compile("against=none%2Cfedceo%3A0.01%2Cfedceo%3A0.1&"))
    expect(page.locator(".st-key-leak-method button")).to_contain_text("FedCEO")
    expect(page.locator(".sheet")).to_contain_text("FedCEO")


def test_a_suggestion_is_chosen_by_keyboard(server: Server, stranger: BrowserContext) -> None:
    page = opened(server, stranger)
    box = drawer(page)
    expect(box.get_by_role("button", name="None", exact=True)).to_be_disabled()
    box.get_by_role("button", name="Noise on each step").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("against=none%2Cdp-fedavg%3A0.01"))
    expect(box).to_be_hidden()
    box = drawer(page)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(page).to_have_url(re.compile("against=none%2Cdp-fedavg%3A0.01"))


def test_the_whole_card_is_a_button_and_a_phone_shows_the_drawer_alone(
    server: Server, stranger: BrowserContext
) -> None:
    page = opened(server, stranger, 390)
    box = drawer(page)
    page.wait_for_function("() => document.querySelector('[role=dialog]').getBoundingClientRect().left === 0")
    size = box.bounding_box()
    assert size and size["width"] == 390
    box.get_by_text("so that its upload hides any single picture").click(force=True)  # the button covers it
    expect(page).to_have_url(re.compile("against=none%2Cdp-fedavg%3A0.01"))


def test_a_thorough_attacker_adds_attacks_that_search(server: Server, stranger: BrowserContext) -> None:
    page = opened(server, stranger)
    page.locator(".st-key-leak-attacker button").first.click()
    expect(page.get_by_text("1 attacker fits: Read off the first layer.")).to_be_visible()
    page.get_by_role("radio", name=re.compile(f"^{attackers.THOROUGH}")).click()
    expect(page).to_have_url(re.compile("attacks=analytic%2Cdlg%2Cgradinversion%2Cidlg%2Cinverting-gradients%2Cmap&"))
    expect(page.get_by_text("6 attackers fit:")).to_be_visible()  # the picker stays open
    page.get_by_role("radio", name=attackers.CHANGES).click()
    expect(page).to_have_url(re.compile("attacks=imprint&"))
