"""Start in a real browser: from the first picture to a promise, and from a file to its picture and its deletion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.screens.start import texts
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.pages import REDRAWN
from tests.app.browser.server import Server
from tests.engine.jobs.makers import photo, saved

pytestmark = pytest.mark.slow

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
BAR_PX = 52  # of the navigation at the foot of a phone
# The places that the top of the rebuilt picture has had, from its first appearance on.
WATCH = """
window.tops = [];
const look = () => {
  const hosts = [...document.querySelectorAll('.st-key-stops *')].map((each) => each.shadowRoot).filter(Boolean);
  const drawn = hosts.map((root) => root.querySelector('.rebuilt img')).find((image) => image?.src);
  const first = document.querySelector('.ll-first img:last-child');
  for (const image of [first, drawn]) {
    const seen = image?.complete && image.checkVisibility({ visibilityProperty: true });
    const top = seen ? Math.round(image.getBoundingClientRect().top) : null;
    if (top && window.tops.at(-1) !== top) window.tops.push(top);
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


@pytest.fixture
def start(server: Server, stranger: BrowserContext) -> Iterator[Page]:
    """A new tab without a page. A script error fails the test."""
    page = stranger.new_page()
    script_errors = list[str]()
    page.on("pageerror", lambda error: script_errors.append(str(error)))
    page.add_init_script(WATCH)
    yield page
    page.close()
    assert script_errors == []


def visit(page: Page, server: Server, size: Any) -> Page:
    page.set_viewport_size(size)
    page.goto(server.address)
    expect(word(page)).to_have_text("Her face comes back")
    page.wait_for_function(REDRAWN)
    return page


def word(page: Page) -> Locator:
    return page.locator(".stops .word").first  # for a moment, the slider before is still on the page


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name=texts.PROTECTION)


def shown(page: Page) -> Locator:
    return page.locator(".stops .rebuilt img")


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_first_screen_holds_the_picture_the_verdict_and_the_slider(start: Page, server: Server, size: Any) -> None:
    page = visit(start, server, size)
    lowest = size["height"] - (BAR_PX if size == PHONE else 0)
    parts = [word(page), slider(page), shown(page), page.locator("dd.accuracy"), page.locator("dd.promise")]
    parts += [page.get_by_role("button", name=texts.USE_PHOTO), page.locator(".note button")]
    for part in parts:
        box = part.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= lowest
        assert box["x"] >= 0 and box["x"] + box["width"] <= size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    side = shown(page).bounding_box()
    assert side and side["width"] == (350 if size == PHONE else 308)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_picture_never_moves_while_the_page_loads(start: Page, server: Server, size: Any) -> None:
    page = visit(start, server, size)
    expect(page.get_by_role("link", name=texts.COST)).to_be_visible()
    assert len(page.evaluate("window.tops")) == 1


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_keyboard_moves_from_a_face_to_a_promise(start: Page, server: Server, size: Any) -> None:
    page = visit(start, server, size)
    before = shown(page).get_attribute("src")
    slider(page).press("End")
    expect(word(page)).to_have_text("Her face is not recognised")
    expect(page.locator(".lesson")).to_have_text(texts.LESSON)
    expect(page.locator("dd.promise")).to_contain_text("weak promise")
    expect(slider(page)).to_have_attribute(
        "aria-valuetext", re.compile("^noise 2: Her face is not recognised, accuracy")
    )
    assert shown(page).get_attribute("src") != before
    expect(page).to_have_url(re.compile("stop=7"))
    page.wait_for_function(REDRAWN)
    slider(page).press("Home")
    expect(page).to_have_url(re.compile("stop=0"))
    page.wait_for_function(REDRAWN)
    page.go_back()
    expect(slider(page)).to_have_value("7")


def test_a_tap_turns_the_picture_on_a_phone(start: Page, server: Server) -> None:
    page = visit(start, server, PHONE)
    rebuilt = shown(page).get_attribute("alt")
    page.locator(".stops .rebuilt .stage").click()
    expect(shown(page)).to_have_attribute("alt", re.compile("The original"))
    page.get_by_role("button", name=texts.TURN_REBUILT).click()
    expect(shown(page)).to_have_attribute("alt", str(rebuilt))


def test_another_observer_starts_no_run_and_greys_what_is_the_servers(start: Page, server: Server) -> None:
    page = visit(start, server, DESK)
    page.goto(f"{server.address}/?stop=7&content=1&picture=portrait&eyes=outsider")
    expect(page.get_by_role("heading", level=1)).to_contain_text("anyone outside")
    expect(page.locator("dd.promise")).to_contain_text("limited promise")
    expect(page.get_by_role("radio", name=texts.CONTENTS["cheat"])).to_be_disabled()
    expect(page.get_by_text(texts.SERVER_ONLY)).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_photo_from_its_file_to_its_picture_and_its_deletion(start: Page, server: Server, size: Any) -> None:
    page = visit(start, server, size)
    page.get_by_role("button", name=texts.USE_PHOTO).click()
    chooser = page.locator("input[type=file]")
    assert chooser.get_attribute("accept") == "image/png,image/jpeg"  # a phone offers its camera
    chooser.set_input_files({"name": "photo.png", "mimeType": "image/png", "buffer": saved(photo(64, 80), "PNG")})
    expect(word(page)).to_have_text("Your picture comes back", timeout=3 * PATIENCE_MS)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Instant attack only")
    slider(page).press("End")
    expect(word(page)).to_have_text("Your picture is not recognised", timeout=3 * PATIENCE_MS)
    page.get_by_role("button", name=texts.DELETE).click()
    expect(page.get_by_text("The picture and 8 attacks on it are deleted.")).to_be_visible()
    expect(page).to_have_url(re.compile("picture=portrait"))
    with server.store() as store:
        assert not [run for run in store.runs() if "own-" in str(run.spec)]


def test_a_text_named_png_is_one_sentence_at_its_place(start: Page, server: Server) -> None:
    page = visit(start, server, DESK)
    page.get_by_role("button", name=texts.USE_PHOTO).click()
    page.locator("input[type=file]").set_input_files(
        {"name": "photo.png", "mimeType": "image/png", "buffer": b"no picture"}
    )
    expect(page.get_by_role("alert").filter(has_text="picture").first).to_be_visible()
    expect(word(page)).to_have_text("Her face comes back")
