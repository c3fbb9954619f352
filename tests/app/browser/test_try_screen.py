"""Try in a browser: the stored example, a live run, two sides, and the same page from a shared link."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from app.screens.try_it import texts as try_texts
from tests.app.browser.pages import REDRAWN, TryPage
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
SHORT: dict[str, Any] = {"rounds": 2, "attacks": "analytic"}


def top(page: Page, title: str) -> float:
    """The vertical place of a panel."""
    box = page.get_by_role("heading", name=title, exact=True).bounding_box()
    assert box
    return box["y"]


@pytest.mark.parametrize("size", SIZES)
def test_a_first_visit_needs_no_click(tab: TryPage, size: str) -> None:
    width, height = SIZES[size]
    tab.page.set_viewport_size({"width": width, "height": height})
    tab.visit()
    expect(tab.chart()).to_be_visible()
    assert tab.pictures.count() == 2 and re.fullmatch(r"[\d.]+ %", tab.accuracy)
    expect(tab.page.get_by_text("not recognised", exact=True).first).to_be_visible()
    expect(tab.page.locator(".ll-scores h3").first).to_have_text("PSNR")
    places = [top(tab.page, title) for title in (try_texts.PICTURES, try_texts.ACCURACY, try_texts.SCORES)]
    if size == "phone":
        assert places == sorted(places) and len(set(places)) == 3  # one below the other, the pictures first
    else:
        assert max(places) - min(places) < 2 and max(places) < height  # next to each other
    wide = tab.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    tab.page.locator(".ll-pictures figure").nth(1).focus()  # by keyboard
    expect(tab.page.locator(".ll-pictures figure").nth(1)).to_be_focused()


@pytest.mark.parametrize("size", SIZES)
def test_two_sides_run_and_say_how_they_differ(tab: TryPage, server: Server, size: str) -> None:
    width, height = SIZES[size]
    tab.page.set_viewport_size({"width": width, "height": height})
    seed = 700 + width  # no other test has runs of this seed
    tab.visit(**SHORT, seed=seed)
    tab.button(try_texts.ADD).click()
    expect(tab.page.locator(".st-key-try-side-B")).to_be_visible()
    expect(tab.page.locator(".st-key-try-sentence")).to_contain_text("B has half the ε")
    with server.store() as store:
        assert all(run.spec.get("seed") != seed for run in store.runs() if "attack" not in run.spec)
    tab.run_button.click()
    tab.finish()
    assert tab.pictures.count() == 3
    assert re.match(r"B has half the ε: .* accuracy, and the picture stays hidden\.$", tab.sentence)
    tab.button(try_texts.REMOVE).click()
    expect(tab.page.locator(".st-key-try-side-B")).to_be_hidden()


def test_another_protection_is_chosen_in_the_drawer(tab: TryPage) -> None:
    tab.visit(**SHORT, b="rounds=3")
    tab.page.locator(".st-key-try-B-method button").click()
    drawer = tab.page.get_by_role("dialog")
    drawer.get_by_role("button", name="FedCEO").first.click()
    expect(tab.page).to_have_url(re.compile("b=.*method%3Dfedceo"))
    tab.page.wait_for_function(REDRAWN)
    expect(tab.page.locator(".st-key-try-sentence")).to_contain_text("B has FedCEO in place of Noise by each phone")
    assert "full-local" in tab.link("b")[0]  # each phone adds all the noise, as in the other forms


def test_a_shared_link_shows_the_same_to_a_stranger(tab: TryPage, stranger: BrowserContext) -> None:
    tab.visit(b="method.noise=1;method.server-step=0.02")
    expect(tab.page.locator(".ll-pictures img")).to_have_count(3)
    other = TryPage(stranger.new_page(), tab.address).visit(tab.page.url)
    expect(other.page.locator(".ll-pictures img")).to_have_count(3)
    assert other.sentence == tab.sentence and other.accuracy == tab.accuracy
    assert other.page.url == tab.page.url
    sources = [page.locator(".ll-pictures img").nth(2).get_attribute("src") for page in (tab.page, other.page)]
    assert sources[0] == sources[1]


def test_b05_another_question_keeps_the_earlier_result_apart(tab: TryPage) -> None:
    tab.visit()
    accuracy = tab.accuracy
    tab.type("rounds", 6)
    head = tab.page.locator(".st-key-try-earlier-head")
    expect(head).to_contain_text("Result of an earlier question: Noise by each phone, noise 2")
    assert tab.accuracy == accuracy
    tab.button(try_texts.BACK).click()
    expect(head).to_be_hidden()
    expect(tab.page).to_have_url(re.compile(r"rounds=30(&|$)"))
