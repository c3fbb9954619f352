"""The Leak screen in a real browser: the grid by keyboard, and an uploaded picture that is attacked and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.screens.leak import page as leak_page
from app.texts import attack_form as form_texts
from app.texts import attacks as attack_texts
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.pages import REDRAWN
from tests.app.browser.server import Server
from tests.engine.jobs.makers import photo, saved

pytestmark = pytest.mark.slow

SMALL = {"against": "none,udp-fedavg:0.1", "attacks": "map,inverting-gradients", "iterations": "40", "each": "true"}
PLACES = count(20)  # each test attacks another picture
# Whether the height that the page keeps free before the engine is loaded is the height that the form needs there.
RESERVED_IS_FORM = """(css) => {
  const probe = document.createElement('div');
  probe.innerHTML = `${css}<div class="st-key-leak-loading"></div>`;
  document.body.append(probe);
  const reserved = probe.lastChild.offsetHeight;
  probe.remove();
  const top = (name) => document.querySelector(`.st-key-${name}`).getBoundingClientRect().top;
  return Math.abs(reserved - (top('leak-row') - top('leak-tab'))) <= 8;
}"""


@pytest.fixture
def leak(server: Server, stranger: BrowserContext) -> Iterator[Page]:
    """The Leak screen in a new tab. A script error fails the test."""
    page = stranger.new_page()
    script_errors = list[str]()
    page.on("pageerror", lambda error: script_errors.append(str(error)))
    page.goto(f"{server.address}/leak?{urlencode({**SMALL, 'whose': f'test-{next(PLACES)}'})}")
    expect(page.locator(".st-key-leak-attack button")).to_be_visible()
    yield page
    page.close()
    assert script_errors == []


def cells(page: Page) -> Locator:
    return page.locator("tr.attack td:not(.apart)")


def attack(page: Page) -> None:
    """Press Attack, and wait for the scrubber."""
    page.wait_for_function(REDRAWN)  # while the form changes, the button before is still on the page
    page.locator(".st-key-leak-attack button").click()
    expect(page.get_by_role("slider", name=attack_texts.KEYS["scrub"])).to_be_visible(timeout=3 * PATIENCE_MS)
    page.wait_for_function(REDRAWN)


def test_a_first_visit_shows_a_finished_example(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/leak")
    expect(page.get_by_role("heading", name=attack_texts.PROMISE)).to_be_visible()
    expect(page.get_by_role("img", name=attack_texts.ORIGINAL_ALT).first).to_be_visible()


def test_an_old_link_without_a_path_opens_leak_with_its_settings(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    page.goto(f"{server.address}/?{urlencode({**SMALL, 'whose': 'test-5'})}")
    expect(page).to_have_url(re.compile("/leak.*whose=test-5"))


def test_the_scrubber_shows_earlier_guesses(leak: Page) -> None:
    attack(leak)
    first = cells(leak).first
    verdict = first.locator("b").inner_text()
    last_picture = first.locator("img").get_attribute("src") or ""
    scrub = leak.get_by_role("slider", name=attack_texts.KEYS["scrub"])
    scrub.focus()
    leak.keyboard.press("Home")
    expect(first.locator("b")).to_have_text("…")  # the verdict is about the last guess
    expect(first.locator("img")).not_to_have_attribute("src", last_picture)
    assert "iteration 0" in (scrub.get_attribute("aria-valuetext") or "")
    leak.keyboard.press("End")
    expect(first.locator("b")).to_have_text(verdict)
    expect(first.locator("img")).to_have_attribute("src", last_picture)
    # The browser asks for reduced motion, so the button steps.
    leak.get_by_role("button", name=attack_texts.KEYS["step"]).click()
    expect(first.locator("img")).not_to_have_attribute("src", last_picture)


def test_a_picture_is_compared_with_the_original(leak: Page) -> None:
    attack(leak)
    cells(leak).nth(1).get_by_role("button").click()
    expect(leak.locator("figcaption")).to_contain_text("noise 0.1")
    wipe = leak.get_by_role("slider", name=attack_texts.KEYS["wipe"])
    wipe.focus()
    leak.keyboard.press("Home")
    assert "100%" in leak.locator("img.over").evaluate("image => image.style.clipPath")
    expect(leak.locator(".scores dt")).to_have_text(["PSNR", "SSIM", "LPIPS"])


def test_b31_dragging_over_the_picture_wipes(leak: Page) -> None:
    attack(leak)
    stage = leak.locator(".stage")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    assert box
    leak.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    leak.mouse.down()
    leak.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20, steps=4)
    leak.mouse.up()
    share = float(leak.get_by_role("slider", name=attack_texts.KEYS["wipe"]).input_value())
    assert 22 <= share <= 28


def test_a_redrawn_grid_keeps_the_chosen_picture(leak: Page) -> None:
    attack(leak)
    cells(leak).nth(1).get_by_role("button").click()
    leak.get_by_role("link", name="Try", exact=True).click()
    expect(leak.locator(".st-key-try-shared")).to_be_visible()
    leak.wait_for_function(REDRAWN)
    leak.get_by_role("link", name="Leak", exact=True).click()
    # The figures of Try stay on the page until Leak is drawn, so the caption is that of the grid.
    expect(leak.locator(".wiper figcaption")).to_contain_text("noise 0.1")


def test_an_uploaded_picture_is_attacked_and_deleted(leak: Page, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "upload.png"
    file.write_bytes(saved(photo(60, 60), "PNG"))
    leak.get_by_role("button", name=form_texts.OWN).click()
    leak.locator("input[type=file]").set_input_files(file)
    expect(leak.get_by_role("button", name=re.compile("^your own picture 1, .*, chosen$"))).to_be_attached()
    leak.keyboard.press("Escape")
    attack(leak)
    expect(leak.locator("img[alt*='no protection']").first).to_be_visible()
    leak.get_by_role("button", name=form_texts.DELETE).click()
    expect(leak.get_by_text("4 attacks on it are deleted")).to_be_visible()
    with server.store() as store:
        assert not [row for row in store.runs() if str(row.spec.get("pictures", "")).count("own-")]


@pytest.mark.parametrize(("width", "height", "most"), [(1440, 1000, 1300), (390, 844, 1700)])
def test_b08_the_page_is_short_while_the_list_is_closed(
    server: Server, stranger: BrowserContext, width: int, height: int, most: int
) -> None:
    page = stranger.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server.address}/leak")
    expect(page.locator(".st-key-leak-closer")).to_be_visible()
    expect(page.locator(".wiper")).to_be_visible()
    page.wait_for_function(REDRAWN)
    expect(page.locator(".sheet")).to_be_visible(visible=width > 700)  # a phone shows one picture and no grid
    assert page.locator(".block-container").bounding_box()["height"] <= most  # type: ignore[index]


def test_b08_a_phone_shows_one_picture_whose_protection_a_slider_chooses(
    server: Server, stranger: BrowserContext
) -> None:
    page = stranger.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.address}/leak")
    strength = page.get_by_role("slider", name=attack_texts.KEYS["strength"])
    expect(strength).to_be_visible()
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("no protection: comes back")
    strength.press("End")
    expect(verdict).to_contain_text("noise 0.1: not recognised")
    over = page.locator("img.over")
    expect(over).to_have_css("clip-path", "inset(0px 100% 0px 0px)")  # the rebuilt picture alone
    page.locator(".stage").click()
    expect(over).to_have_css("clip-path", "inset(0px 0% 0px 0px)")  # the original
    page.get_by_role("button", name=attack_texts.KEYS["rebuilt"]).click()
    expect(over).to_have_css("clip-path", "inset(0px 100% 0px 0px)")


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_b33_the_grid_stays_where_it_is_when_the_form_appears(
    server: Server, stranger: BrowserContext, width: int
) -> None:
    page = stranger.new_page()
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(f"{server.address}/leak")
    expect(page.locator(".st-key-leak-closer")).to_be_visible()
    page.wait_for_function(REDRAWN)
    page.wait_for_function(RESERVED_IS_FORM, arg=leak_page.PAGE_CSS)
