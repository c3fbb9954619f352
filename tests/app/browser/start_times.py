"""How long the first picture of Start takes, next to a bare Streamlit page with one picture.

`python3 -m tests.app.browser.start_times`. Cold: from the first request to a process that has just started, in a
browser profile without a cache. Warm: from a click on another screen of a server that has shown the page before.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from engine.environment import ROOT
from tests.app.browser.conftest import ARGUMENTS
from tests.app.browser.server import Server, _free_port

TIMES = 5
CHROMIUM = "/usr/bin/chromium"
PICTURE = ROOT / "assets" / "start" / "portrait.png"
BARE = f"""
import streamlit as st

def first():
    st.image({str(PICTURE)!r})

def second():
    st.title("another page")

page = st.navigation([st.Page(first, title="first", default=True), st.Page(second, title="second")])
page.run()
"""
# The time of the first picture: since the page was opened, and since the last click.
WATCH = """(selector) => {
  const look = () => {
    const picture = document.querySelector(selector);
    if (picture?.complete && picture.naturalWidth && picture.checkVisibility({ visibilityProperty: true })) {
      window.pictureAt ??= performance.now();
    } else requestAnimationFrame(look);
  };
  window.watchPicture = () => { window.pictureAt = null; window.startedAt = performance.now(); look(); };
  document.addEventListener('click', window.watchPicture, true);
  window.watchPicture();
  window.startedAt = 0;
}"""
OURS, PLAIN = ".ll-first img", "[data-testid=stImage] img"


def opened(browser: Browser, address: str, selector: str) -> tuple[Page, float]:
    """A page in a new profile, and the seconds from its request to its first picture."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(f"({WATCH})({selector!r})")
    page.goto(address)
    return page, picture_s(page)


def picture_s(page: Page) -> float:
    page.wait_for_function("window.pictureAt")
    return float(page.evaluate("(window.pictureAt - window.startedAt) / 1000"))


def clicked(page: Page, away: str, back: str) -> float:
    """The seconds from a click on a link to the first picture. The other page must be drawn before."""
    page.get_by_role("link", name=away, exact=True).first.click()
    page.wait_for_function("!document.querySelector('.ll-first, [data-testid=stImage]')")
    time.sleep(1.0)
    page.get_by_role("link", name=back, exact=True).first.click()
    return picture_s(page)


@contextmanager
def bare(folder: Path) -> Iterator[str]:
    """The bare Streamlit page as a process of its own."""
    script = folder / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    port = _free_port()
    options = ["--server.port", str(port), "--server.headless", "true", "--browser.gatherUsageStats", "false"]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while not _answers(address):
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in ("cold", "cold bare", "warm", "warm bare")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for _ in range(TIMES):
            with tempfile.TemporaryDirectory() as name:
                with Server(Path(name)) as server:
                    page, seconds = opened(browser, server.address, OURS)
                    times["cold"].append(seconds)
                    times["warm"].append(clicked(page, "Trade-off", "LeakLens"))
                    page.context.close()
                with bare(Path(name)) as address:
                    page, seconds = opened(browser, address, PLAIN)
                    times["cold bare"].append(seconds)
                    times["warm bare"].append(clicked(page, "second", "first"))
                    page.context.close()
        browser.close()
    for name, seconds_of in times.items():
        each = ", ".join(f"{seconds:.2f}" for seconds in seconds_of)
        print(f"{name}: median {statistics.median(seconds_of):.2f} s ({each})")


if __name__ == "__main__":
    main()
