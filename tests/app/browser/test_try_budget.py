"""The budget slider and the details of Try in a browser."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.app.browser.pages import REDRAWN, TryPage
from tests.app.browser.server import Server
from tests.app.browser.test_axe import SIDES, describe, findings

pytestmark = pytest.mark.slow
LAST = 7  # the place of the strongest budget: off, six budgets, and the noise of the first visit


def slider(tab: TryPage) -> Locator:
    return tab.page.get_by_role("slider", name="Budget ε of side A")


def says(tab: TryPage) -> Locator:
    """What the slider of side A says about its position."""
    return tab.page.locator(".st-key-budget-A .says")


def hold(tab: TryPage, place: int) -> None:
    """Press the slider, and move the finger to a position without lifting it."""
    box = slider(tab).bounding_box()
    assert box
    height = box["y"] + box["height"] / 2
    tab.page.mouse.move(box["x"] + box["width"] / 2, height)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 8 + (box["width"] - 16) * place / LAST, height, steps=4)


def test_the_slider_follows_the_finger_and_a_release_changes_the_noise(tab: TryPage) -> None:
    address = tab.visit().page.url
    expect(says(tab)).to_contain_text("37 % accuracy, measured")
    hold(tab, 0)
    expect(says(tab)).to_contain_text("no noise")
    expect(says(tab)).to_contain_text("comes back")
    hold(tab, 3)
    expect(says(tab)).to_contain_text("no meaningful promise")
    expect(says(tab)).to_contain_text(
        re.compile(r"about \d+ % accuracy \(\d+ to \d+\), estimated from \d+ stored runs")
    )
    assert tab.page.url == address  # the server has heard nothing
    tab.page.mouse.up()
    expect(tab.page).to_have_url(re.compile(r"method\.noise=0\.569"))
    tab.page.wait_for_function(REDRAWN)
    expect(says(tab)).to_contain_text("ε 30 against the server")


def test_arrow_keys_move_the_slider_and_the_last_position_counts(tab: TryPage) -> None:
    tab.visit()
    slider(tab).focus()
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    assert "30: ✗ no meaningful promise" in str(slider(tab).get_attribute("aria-valuetext"))
    expect(tab.page).to_have_url(re.compile(r"method\.noise=0\.569"))


def test_another_observer_keeps_the_noise(tab: TryPage) -> None:
    tab.visit(eyes="outsider")
    expect(says(tab)).to_contain_text("against an outsider")
    expect(says(tab)).to_contain_text("(noise 2)")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("closer", ["privacy", "seeds", "table", "take"])
def test_axe_finds_nothing_serious_in_the_slider_and_the_details(
    regular: BrowserContext, server: Server, axe: str, side: Literal["light", "dark"], closer: str
) -> None:
    with regular.new_page() as page:
        page.emulate_media(color_scheme=side)
        tab = TryPage(page, server.address)
        tab.visit(closer=closer, b="method.noise=0.3;method.server-step=0.1", pins="1afc65c4b0a0")
        expect(says(tab)).to_contain_text("promise")
        expect(page.locator(".st-key-try-details")).to_be_visible()
        violations = findings(page, axe)
        assert not violations, "\n" + describe(violations)
