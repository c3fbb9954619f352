"""The selectors of the browser tests, and the waits that belong to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

from app.screens.try_it import texts as try_texts
from app.screens.try_it.settings import TrySettings
from app.session import run_settings
from app.texts import product
from engine.specs.run import RunSpec

SAID = "[role=status], [role=alert], .ll-note, .ll-problem"
FORM = """() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-try-A-"]')].map(box => [
    [...box.classList].find(name => name.startsWith('st-key-try-A-')).slice(13),
    [...box.querySelectorAll('input')].map(one => ['checkbox', 'radio'].includes(one.type) ? one.checked : one.value)
]))"""
REDRAWN = "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
LOOK = """() => { window.faintest = 1; const look = () => {
    for (const one of document.querySelectorAll('.js-plotly-plot, summary')) {
        let opacity = 1;
        for (let box = one; box; box = box.parentElement) opacity *= getComputedStyle(box).opacity;
        window.faintest = Math.min(window.faintest, opacity);
    }
    requestAnimationFrame(look);
}; look(); }"""
# A run that does not finish during a test, even on one core.
LONG: dict[str, Any] = {"method": "fedavg", "rounds": 9000, "sampled": 1, "epochs": 20, "attacks": "analytic"}
BATCH_MS = 150_000.0  # for the runs and attacks of one click on a busy machine
ROUND = re.compile(r"round (\d+) of (\d+)")
STOPPED = re.compile(r"(Cancelled|Interrupted) after round (\d+)")


class TryPage:
    """Try in one tab of a browser."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.broken: list[str] = []  # uncaught errors of the page's scripts
        page.on("pageerror", lambda error: self.broken.append(str(error)))

    # --- links

    def visit(self, link: str = "", **settings: Any) -> TryPage:
        """Open a link, or Try with some settings, and wait for the form."""
        query = urlencode({name.replace("_", "-"): value for name, value in settings.items()})
        self.page.goto(link or f"{self.address}/try?{query}".rstrip("?"))
        return self.settled()

    def settled(self) -> TryPage:
        """Wait until the form is drawn and the pass has ended."""
        expect(self.page.locator(".st-key-try-shared")).to_be_visible()
        self.page.wait_for_function(REDRAWN)
        return self

    def link(self, name: str) -> list[str]:
        """Return the values of one parameter in the address."""
        return parse_qs(urlsplit(self.page.url).query).get(name, [""])[0].split(",")

    def go(self, name: str) -> None:
        """Open another screen, and wait until it is drawn."""
        link = self.page.get_by_role("link", name=name, exact=True)
        if not link.is_visible():
            self.page.get_by_role("button", name=product.MORE, exact=True).click()
        link.click()
        expect(self.page.get_by_role("heading", name=name, level=1)).to_be_visible()
        self.page.wait_for_function(REDRAWN)

    @property
    def spec(self) -> RunSpec:
        """The run that the address describes."""
        params = {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query).items()}
        settings, _ = TrySettings.read_link(params, TrySettings.default())
        return run_settings.spec_of(settings.run)

    @property
    def run_id(self) -> str:
        return self.spec.id

    # --- the form

    @property
    def run_button(self) -> Locator:
        return self.page.locator(".st-key-try-run button")

    def open_fields(self) -> TryPage:
        """Show the fields behind *change*."""
        if not self.page.locator(".st-key-try-fields").count():
            self.page.locator(".st-key-try-change button").click()
        expect(self.field("rounds")).to_be_visible()
        self.page.wait_for_function(REDRAWN)
        return self

    def field(self, path: str) -> Locator:
        """Return the input of a setting of side A. The path is its parameter in the link."""
        return self.page.locator(f".st-key-try-A-{path.replace('.', '-')} input")

    def type(self, path: str, value: object) -> None:
        """Type a value, move to the next field, and wait until the link has the value."""
        self.open_fields()
        self.field(path).fill(str(value))
        self.field(path).press("Tab")
        expect(self.page).to_have_url(re.compile(rf"[?&]{re.escape(path)}={value}(&|$)"))

    def form(self) -> Mapping[str, list[object]]:
        """Return every setting of side A."""
        self.open_fields()
        settings: Mapping[str, list[object]] = self.page.evaluate(FORM)
        return settings

    def ask(self) -> str:
        """Press Run, and return the id of the run that the page then shows."""
        self.run_button.click()
        expect(
            self.page.locator(".st-key-try-cancel").or_(self.page.get_by_text(try_texts.FINISHED)).first
        ).to_be_visible()
        return self.run_id

    # --- the results

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def chart(self) -> Locator:
        return self.page.get_by_role("figure", name=re.compile("^Accuracy by round"))

    @property
    def pictures(self) -> Locator:
        """The original, and what came back on each side."""
        return self.page.locator(".ll-pictures img")

    @property
    def sentence(self) -> str:
        """What the panels show in words."""
        return self.page.locator(".st-key-try-sentence").inner_text()

    def says(self, text: str | re.Pattern[str]) -> Locator:
        return self.page.locator("p", has_text=text).first

    def notice(self, text: str) -> Locator:
        """Return a visible note or refusal."""
        return self.page.locator(SAID).filter(visible=True).filter(has_text=text).first

    @property
    def exceptions(self) -> Locator:
        return self.page.get_by_test_id("stException")

    @property
    def accuracy(self) -> str:
        """The accuracy of side A, for example `56.8 %`."""
        match = re.search(r"[\d.]+ %", self.page.locator(".ll-numbers-of").first.inner_text())
        return match.group() if match else ""

    def watch(self, beyond: int = 0) -> int:
        """Wait until the page shows a round after `beyond`, and return that round."""
        self.page.wait_for_function(
            "beyond => Number(/round (\\d+) of/.exec(document.body.innerText)?.[1]) > beyond", arg=beyond
        )
        match = ROUND.search(self.says(ROUND).inner_text())
        return int(match.group(1)) if match else beyond + 1

    def look_closely(self) -> None:
        """From now on, record the lowest opacity of a chart or a box."""
        self.page.evaluate(LOOK)

    @property
    def faintest(self) -> float:
        return float(self.page.evaluate("() => window.faintest"))

    def stopped(self) -> int:
        """Wait until the page shows that the run stopped, and return the last round."""
        match = STOPPED.search(self.says(STOPPED).inner_text())
        assert match
        return int(match.group(2))

    def finish(self) -> str:
        """Wait until all runs and attacks on the page have ended, and return the accuracy."""
        expect(self.page.get_by_text(try_texts.FINISHED)).to_be_visible(timeout=BATCH_MS)
        expect(self.button("Cancel")).to_be_hidden()
        return self.accuracy

    def saves(self, kind: str) -> Locator:
        """Return the buttons that save a chart as a picture."""
        return self.page.locator(f"button[data-save={kind}]")

    @property
    def compared(self) -> list[dict[str, str]]:
        """The table of pinned runs."""
        table = self.page.locator(".ll-rows table")
        expect(table.locator("tbody tr").nth(1)).to_be_attached()
        names = table.locator("thead th").all_text_contents()
        rows = [row.locator("th, td").all_text_contents() for row in table.locator("tbody tr").all()]
        return [dict(zip(names, row, strict=True)) for row in rows]
