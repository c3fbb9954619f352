"""A real browser and a real server for the tests of the dashboard. A missing one skips or fails the test."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.app.browser.pages import TryPage
from tests.app.browser.server import Server

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # it opens only our own pages, and root has no sandbox
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
NewProfile = Callable[[Browser], BrowserContext]
RUNNING = pytest.StashKey[tuple[Server, Browser]]()
DIALOG = "A dialog of Streamlit: "
# Streamlit opens a dialog of its own only for an error, for example "Cached ForwardMsg MISS". Ours hold a block.
REPORT_DIALOGS = """setInterval(() => {
    const dialog = document.querySelector('[role=dialog]');
    const seen = dialog?.seen;
    if (dialog) dialog.seen = true;
    if (!seen || dialog.reported || dialog.querySelector('[data-testid=stVerticalBlock]')) return;
    dialog.reported = true;
    console.error('%s' + dialog.innerText);
}, 100)"""
PATIENCE_MS = 30_000.0  # for every wait on a page: a busy machine is slow


def absent(what: str) -> NoReturn:
    """Skip the test, or fail it if REQUIRE_BROWSER is set."""
    if os.environ.get("REQUIRE_BROWSER", "0") not in ("", "0"):
        pytest.fail(f"{what}, and REQUIRE_BROWSER is set", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        installed = [path for path in map(shutil.which, NAMES) if path]
        if Path(own).exists():
            installed.append(own)
        if not installed:
            absent("there is no chromium here: install the package chromium")
        browser = playwright.chromium.launch(executable_path=installed[0], args=ARGUMENTS)
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
    """One server for all tests, with its own home. Each test submits other runs."""
    with Server(tmp_path_factory.mktemp("server")) as server:
        request.session.stash[RUNNING] = server, chromium
        yield server


@pytest.fixture
def resting(server: Server) -> Iterator[None]:
    """After the test, start a killed server again and cancel all runs that are left."""
    yield
    server.start()
    server.rest()


@pytest.fixture(scope="session")
def dialogs() -> list[str]:
    """The error dialogs of Streamlit in all tabs. A test in which one opens fails."""
    return []


@pytest.fixture(autouse=True)
def no_error_dialog(dialogs: list[str]) -> Iterator[None]:
    dialogs.clear()
    yield
    assert dialogs == []


@pytest.fixture(scope="session")
def new_profile(dialogs: list[str]) -> NewProfile:
    """Opens a browser profile that reports the error dialogs of Streamlit."""

    def report(message: ConsoleMessage) -> None:
        if message.text.startswith(DIALOG):
            dialogs.append(message.text)

    def opened(chromium: Browser) -> BrowserContext:
        profile = chromium.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
        profile.set_default_timeout(PATIENCE_MS)
        profile.add_init_script(REPORT_DIALOGS % DIALOG)
        profile.on("console", report)
        return profile

    return opened


@pytest.fixture(scope="package")
def regular(chromium: Browser, new_profile: NewProfile) -> Iterator[BrowserContext]:
    """A browser profile with a cache from earlier tests."""
    with new_profile(chromium) as profile:
        yield profile


@pytest.fixture
def stranger(chromium: Browser, new_profile: NewProfile, resting: None) -> Iterator[BrowserContext]:
    """A new browser profile."""
    with new_profile(chromium) as profile:
        yield profile


@pytest.fixture
def tab(server: Server, regular: BrowserContext, resting: None) -> Iterator[TryPage]:
    """Try in a new tab. A script error fails the test."""
    page = regular.new_page()
    tab = TryPage(page, server.address)
    yield tab
    page.close()
    assert tab.broken == []


# --- the report of a failure -----------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Add the log of the server and every open tab to the report of a failure."""
    report = yield
    running = item.session.stash.get(RUNNING, None)
    if running and report.failed and call.when != "teardown":
        server, browser = running
        report.sections.append(("the log of the server", server.words()))
        pages = [page for profile in browser.contexts for page in profile.pages]
        for number, page in enumerate(pages, start=1):
            name = re.sub(r"\W+", "-", f"{item.name}-tab-{number}")
            report.sections.append((f"tab {number}", _save_page(page, server.folder / name)))
    return report


def _save_page(page: Page, path: Path) -> str:
    """Save a screenshot and the text of a page in the folder of the server."""
    try:
        page.screenshot(path=f"{path}.png", full_page=True)
        text = page.locator("body").inner_text()
        Path(f"{path}.txt").write_text(f"{page.url}\n{text}", encoding="utf-8")
    except Exception as error:  # a page that crashed has neither
        return f"{page.url}\n{error}"
    return f"{page.url}\nThe page is kept in {path}.png and .txt"
