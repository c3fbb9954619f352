"""Two visitors side by side in class mode: private pictures, shared sweeps, and a restart in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from tests.app.browser.conftest import NewProfile
from tests.app.browser.server import Server
from tests.engine.jobs.makers import photo, saved

pytestmark = pytest.mark.slow
PATIENCE_S = 60.0
WIDTH, HEIGHT = 1440, 1000


@pytest.fixture
def school(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    with Server(tmp_path) as server:
        yield server


@pytest.fixture
def visitors(chromium: Browser, school: Server, new_profile: NewProfile) -> Iterator[tuple[Page, Page]]:
    """Ann and Bob, each in a browser of their own."""
    contexts = [new_profile(chromium) for _ in range(2)]
    first, second = (context.new_page() for context in contexts)
    yield first, second
    for context in contexts:
        context.close()


def open_leak(page: Page, server: Server, query: str = "") -> None:
    page.goto(f"{server.address}/leak{query}")
    expect(page.locator(".st-key-leak-whose")).to_be_visible()
    expect(page.get_by_role("button", name="Your own picture", exact=True)).to_be_visible()


def bring(page: Page, file: Path) -> str:
    """Upload a photo. Returns the address, which names it."""
    page.get_by_role("button", name="Your own picture", exact=True).click()
    page.locator("[data-testid=stFileUploaderDropzoneInput]").set_input_files(file)
    expect(page.locator(".st-key-leak-delete")).to_be_visible()
    page.wait_for_url("**whose=own-**")
    return page.url


def wait_for(condition: object, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def rows(page: Page, server: Server) -> str:
    """The text of the page Runs."""
    page.goto(f"{server.address}/runs")
    expect(page.get_by_role("heading", name="Runs and machine", level=1)).to_be_visible()
    time.sleep(1.0)
    return page.locator("body").inner_text()


def test_no_visitor_sees_opens_or_deletes_the_picture_of_another(
    school: Server, visitors: tuple[Page, Page], tmp_path: Path
) -> None:
    ann, bob = visitors
    file = tmp_path / "photo.png"
    file.write_bytes(saved(photo(60, 60), "PNG"))
    pictures = UploadedPictures(Store(school.home).home)
    open_leak(ann, school)
    ann.get_by_role("button", name="Your own picture", exact=True).click()
    expect(ann.get_by_text("Other visitors cannot open it.")).to_be_visible()
    ann.keyboard.press("Escape")
    link = bring(ann, file)
    (name,) = pictures.names()
    ann.locator(".st-key-leak-attack button").click()
    expect(ann.locator(".st-key-leak-attack button")).to_be_hidden()  # the click has arrived before the page is left
    wait_for(lambda: "a picture of your own" in rows(ann, school))

    assert "a picture of your own" not in rows(bob, school)
    open_leak(bob, school, f"?{link.partition('?')[2]}")
    expect(bob.get_by_text("This picture is not yours, or it was deleted.")).to_be_visible()
    wait_for(lambda: name not in bob.evaluate("location.href"))  # the address is written at the end of a pass
    assert not bob.locator(".st-key-leak-delete").count()
    assert pictures.names() == (name,)

    bob_link = bring(bob, file)  # the same photo: they share it
    assert name in bob_link
    open_leak(ann, school, f"?{link.partition('?')[2]}")
    ann.get_by_role("button", name="Delete this picture").first.click()
    expect(ann.get_by_text("Another visitor uploaded it, too")).to_be_visible()
    assert pictures.names() == (name,)
    assert "a picture of your own" not in rows(ann, school) and "a picture of your own" in rows(bob, school)

    school.kill()
    school.start()
    wait_for(lambda: pictures.names() == ())  # the visit of the server before has ended
    open_leak(bob, school, f"?{bob_link.partition('?')[2]}")
    expect(bob.get_by_text("This picture is not yours, or it was deleted.")).to_be_visible()
    assert "a picture of your own" not in rows(bob, school)
    wait_for(lambda: not any("own-" in str(run.spec) for run in Store(school.home).runs()))


def test_a_cancel_of_one_visitor_leaves_the_sweep_of_the_other(school: Server, visitors: tuple[Page, Page]) -> None:
    ann, bob = visitors
    query = "tradeoff?methods=udp-fedavg&noises=1%3B2&seeds=2&rounds=100&clients=100&sampled=30"
    store = Store(school.home)
    for page in visitors:
        page.goto(f"{school.address}/{query}")
        button = page.locator(".st-key-tradeoff-run button")
        expect(button).to_be_enabled()  # the runs of Ann do not take it away from Bob
        button.click()
        expect(page.locator(".st-key-tradeoff-cancel button")).to_be_visible()
    (batch,) = store.batches.listed()
    assert len(batch.visitors) == 2
    ann.locator(".st-key-tradeoff-cancel button").click()
    expect(ann.get_by_text("they continue").or_(ann.get_by_text("it continues"))).to_be_visible()
    statuses = set(store.statuses(batch.runs).values())
    assert "cancelled" not in statuses and statuses & {"queued", "running"}
    bob.locator(".st-key-tradeoff-cancel button").click()
    wait_for(lambda: not set(store.statuses(batch.runs).values()) & {"queued", "running"})
    assert "cancelled" in set(store.statuses(batch.runs).values())
