"""A real browser and a real server for the journeys: they are here, or a test says what is missing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.app.browser.pages import LabPage
from tests.app.browser.server import Server

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # it opens nothing but our own pages, and as root there is no sandbox
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
THERE = pytest.StashKey[tuple[Server, Browser]]()
PATIENCE_MS = 30_000.0  # for anything that a page waits for; a busy machine is slow, not broken


def absent(what: str) -> NoReturn:
    """A machine without it may skip these tests; one that must have it may not."""
    if os.environ.get("REQUIRE_BROWSER", "0") not in ("", "0"):
        pytest.fail(f"{what}, and REQUIRE_BROWSER is set", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, NAMES)), own if Path(own).exists() else None)
        if found is None:
            absent("there is no chromium here: install the package chromium")
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        absent("axe-core is not here: run npm ci in tests/app/browser")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="package")
def server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Server]:
    """One for all tests, with a home of its own: each test asks its own questions."""
    with Server(tmp_path_factory.mktemp("server")) as server:
        request.session.stash[THERE] = server, chromium
        yield server


@pytest.fixture
def resting(server: Server) -> Iterator[None]:
    """Whatever a test leaves running is stopped, and a server that it killed lives again."""
    yield
    server.start()
    server.rest()


def _profile(chromium: Browser) -> BrowserContext:
    profile = chromium.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    profile.set_default_timeout(PATIENCE_MS)
    return profile


@pytest.fixture(scope="package")
def regular(chromium: Browser) -> Iterator[BrowserContext]:
    """Somebody who comes again and again: the browser has kept what never changes."""
    with _profile(chromium) as profile:
        yield profile


@pytest.fixture
def stranger(chromium: Browser, resting: None) -> Iterator[BrowserContext]:
    """Somebody who has never been here."""
    with _profile(chromium) as profile:
        yield profile


@pytest.fixture
def lab(server: Server, regular: BrowserContext, resting: None) -> Iterator[LabPage]:
    """The Lab in a new tab, where no script may break."""
    page = regular.new_page()
    lab = LabPage(page, server.address)
    yield lab
    page.close()
    assert lab.broken == []


# --- what a failure leaves behind ------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Into the report of a failure: what the server wrote, and every open tab."""
    report = yield
    there = item.session.stash.get(THERE, None)
    if there and report.failed and call.when != "teardown":
        server, browser = there
        report.sections.append(("the server's own words", server.words()))
        for at, page in enumerate((page for profile in browser.contexts for page in profile.pages), start=1):
            name = re.sub(r"\W+", "-", f"{item.name}-tab-{at}")
            report.sections.append((f"tab {at}", _kept(page, server.folder / name)))
    return report


def _kept(page: Page, path: Path) -> str:
    """The picture and the words of a page, in the folder of the server."""
    try:
        page.screenshot(path=f"{path}.png", full_page=True)
        text = page.locator("body").inner_text()
        Path(f"{path}.txt").write_text(f"{page.url}\n{text}", encoding="utf-8")
    except Exception as error:  # a page that crashed has neither
        return f"{page.url}\n{error}"
    return f"{page.url}\nThe page is kept in {path}.png and .txt"
