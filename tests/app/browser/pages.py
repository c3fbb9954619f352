"""Where things stand on a page: every selector of these tests, and the waits that go with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

SAID = "[role=status], [role=alert], .ll-note, .ll-problem"
FORM = """() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-w-"]')].map(box => [
    [...box.classList].find(name => name.startsWith('st-key-w-')).slice(9),
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
LONG: dict[str, Any] = {"method": "fedavg", "rounds": 9000, "sampled": 1, "epochs": 20}  # on one core; never ends
ROUND = re.compile(r"round (\d+) of (\d+)")
STOPPED = re.compile(r"(Cancelled|Interrupted) after round (\d+)")


class LabPage:
    """The Lab in one tab of a browser."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.broken: list[str] = []  # what a script on the page did not catch
        page.on("pageerror", lambda error: self.broken.append(str(error)))

    # --- coming and going

    def visit(self, link: str = "", **settings: Any) -> LabPage:
        """Open a link, or the Lab with some settings, and wait for the form."""
        query = urlencode({name.replace("_", "-"): value for name, value in settings.items()})
        self.page.goto(link or f"{self.address}/lab?{query}".rstrip("?"))
        return self.settled()

    def settled(self) -> LabPage:
        """The form is there, and the pass that drew it is over."""
        expect(self.run_button).to_be_visible()
        self.page.wait_for_function(REDRAWN)
        return self

    def link(self, name: str) -> list[str]:
        """What the address says under a name, as a list."""
        return parse_qs(urlsplit(self.page.url).query).get(name, [""])[0].split(",")

    def go(self, name: str) -> None:
        """To another screen, and wait until it is drawn."""
        self.page.get_by_role("link", name=name, exact=True).click()
        expect(self.page.get_by_role("heading", name=name, level=1)).to_be_visible()
        self.page.wait_for_function(REDRAWN)

    @property
    def run_id(self) -> str:
        return self.link("run")[0]

    # --- the question

    @property
    def run_button(self) -> Locator:
        return self.page.get_by_role("button", name="Run", exact=True)

    def field(self, path: str) -> Locator:
        """The input of a setting, by the path that a link gives it."""
        return self.page.locator(f".st-key-w-{path.replace('.', '-')} input")

    def type(self, path: str, value: object) -> None:
        """As a person does, who then goes on to the next field; the link follows."""
        self.field(path).fill(str(value))
        self.field(path).press("Tab")
        expect(self.page).to_have_url(re.compile(rf"[?&]{re.escape(path)}={value}(&|$)"))

    def form(self) -> Mapping[str, list[object]]:
        """Every setting that the form shows, those under "More settings" too."""
        found: Mapping[str, list[object]] = self.page.evaluate(FORM)
        return found

    def ask(self) -> str:
        """Press Run, and say which run the page shows from then on."""
        before = self.run_id
        self.run_button.click()
        expect(self.page).not_to_have_url(re.compile(rf"[?&]run={before}"))
        return self.run_id

    # --- the answer

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def chart(self, title: str = "Accuracy by round") -> Locator:
        return self.page.get_by_role("figure", name=re.compile(f"^{title}"))

    def says(self, text: str | re.Pattern[str]) -> Locator:
        return self.page.locator("p", has_text=text).first

    def notice(self, text: str) -> Locator:
        """A note or a refusal that can be seen."""
        return self.page.locator(SAID).filter(visible=True).filter(has_text=text).first

    @property
    def exceptions(self) -> Locator:
        return self.page.get_by_test_id("stException")

    @property
    def accuracy(self) -> str:
        """The first number of the headline: `56.8 %`."""
        found = re.search(r"[\d.]+ %", self.page.get_by_role("definition").first.inner_text())
        return found.group() if found else ""

    def watch(self, beyond: int = 0) -> int:
        """Wait for the words of a round after this one."""
        self.page.wait_for_function(
            "beyond => Number(/round (\\d+) of/.exec(document.body.innerText)?.[1]) > beyond", arg=beyond
        )
        found = ROUND.search(self.says(ROUND).inner_text())
        return int(found.group(1)) if found else beyond + 1

    def look_closely(self) -> None:
        """From now on, keep the faintest that a chart or a box ever was."""
        self.page.evaluate(LOOK)

    @property
    def faintest(self) -> float:
        return float(self.page.evaluate("() => window.faintest"))

    def stopped(self) -> int:
        """Wait until the run says that it stopped, and after which round."""
        found = STOPPED.search(self.says(STOPPED).inner_text())
        assert found
        return int(found.group(2))

    def finish(self, rounds: int) -> str:
        """Wait for the end of everything on the page; the accuracy it shows."""
        expect(self.page.get_by_text(re.compile(rf"after {rounds} rounds in"))).to_be_visible()
        expect(self.button("Cancel")).to_be_hidden()
        return self.accuracy

    def unfold(self, within: str) -> None:
        """See to it that the box at the foot of the page that holds a thing is open."""
        thing = self.page.locator(within).first
        if not thing.is_visible():
            self.page.locator("details", has=thing).last.locator("summary").first.click()
        expect(thing).to_be_visible()

    def saves(self, kind: str) -> Locator:
        """The buttons that save a chart as a picture."""
        return self.page.locator(f"button[data-save={kind}]")

    @property
    def compared(self) -> list[dict[str, str]]:
        """The table of pinned runs; it is drawn on a canvas that holds the same as a table for screen readers."""
        table = self.page.get_by_test_id("stDataFrame").locator("table")
        expect(table.locator("tbody tr").nth(1)).to_be_attached()
        names = table.locator("thead th").all_text_contents()
        rows = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
        return [dict(zip(names, row, strict=True)) for row in rows]
