"""The blind test in a real browser: its pictures are chosen by touch and by keyboard on a phone."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, expect

from app.screens.leak.blind_test import texts as blind_test_texts
from engine.specs.attack_series import CHOICES
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow
TARGET_PX = 44  # the least side of what a finger hits
SMALL = {"against": "none,udp-fedavg:0.1", "attacks": "map", "iterations": "3", "closer": "test"}


def test_b30_a_picture_is_chosen_by_enter_and_by_touch(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.address}/leak?{urlencode(SMALL)}")
    page.locator(".st-key-test-ask button").click()
    pictures = page.locator(".st-key-test-choices button")
    expect(pictures).to_have_count(CHOICES, timeout=3 * PATIENCE_MS)
    boxes = pictures.evaluate_all("buttons => buttons.map(button => button.getBoundingClientRect().toJSON())")
    assert len({box["x"] for box in boxes}) == 3 and len({box["y"] for box in boxes}) == 2
    assert min(min(box["width"], box["height"]) for box in boxes) >= TARGET_PX
    page.get_by_role("button", name=f"Picture 2 of {CHOICES}").press("Enter")
    original = page.get_by_role("img", name=blind_test_texts.ORIGINAL)
    expect(original).to_be_visible()
    page.get_by_role("button", name=blind_test_texts.NEXT).click()
    page.get_by_role("button", name=f"Picture 5 of {CHOICES}").click()
    expect(original).to_be_visible()
    expect(page.get_by_text("1 in 6").first).to_be_visible()
