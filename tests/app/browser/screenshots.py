"""Screenshots for the README. `python3 -m tests.app.browser.screenshots` writes assets/screenshots again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from app.texts import product
from engine.environment import ROOT
from tests.app.browser.conftest import ARGUMENTS, NAMES
from tests.app.browser.pages import TryPage
from tests.app.browser.server import Server
from tests.app.browser.test_axe import SIDES

FOLDER = ROOT / "assets" / "screenshots"
SIZES = {"": (1440, 1000), "-narrow": (800, 1000)}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    browser = next(filter(None, map(shutil.which, NAMES)))
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
        for side in SIDES:
            for suffix, (width, height) in SIZES.items():
                page = chromium.new_page(
                    viewport={"width": width, "height": height}, color_scheme=side, reduced_motion="reduce"
                )
                page.goto(server.address)
                expect(page.locator(".stops .word")).not_to_be_empty(timeout=60_000)
                page.wait_for_timeout(1_000)
                page.screenshot(path=FOLDER / f"start-{side}{suffix}.png")
                page.goto(f"{server.address}/leak")
                expect(page.locator(".st-key-leak-live button")).to_be_visible(timeout=60_000)
                page.wait_for_timeout(4_000)  # until the stored pictures have played
                page.screenshot(path=FOLDER / f"leak-{side}{suffix}.png")
                tab = TryPage(page, server.address).visit()
                page.locator(".st-key-try-add button >> visible=true").first.click()
                tab.settled()
                if tab.button("Run").count():  # else the store has these runs already
                    tab.button("Run").click()
                    page.wait_for_timeout(2_500)  # until the progress is there
                expect(tab.button("Cancel")).to_be_hidden(timeout=120_000)
                page.mouse.move(5, 500)
                page.wait_for_timeout(700)
                page.screenshot(path=FOLDER / f"try-{side}{suffix}.png")
                page.goto(f"{server.address}/tradeoff")
                expect(page.locator(".st-key-tradeoff-live button")).to_be_visible(timeout=60_000)
                page.wait_for_timeout(2_000)
                page.screenshot(path=FOLDER / f"tradeoff-{side}{suffix}.png")
                page.goto(f"{server.address}/runs")
                expect(page.get_by_role("heading", name=product.RUNS, level=1)).to_be_visible()
                page.wait_for_timeout(1_500)
                page.screenshot(path=FOLDER / f"runs-{side}{suffix}.png")
                page.close()  # the screen Machine is left out: it shows the folders of this machine


if __name__ == "__main__":
    main()
