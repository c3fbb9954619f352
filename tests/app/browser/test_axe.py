"""Every screen, light and dark, against the accessibility rules of axe-core: nothing serious, nothing critical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from app.texts import attackers, protections
from tests.app.browser.pages import LONG, REDRAWN, TryPage
from tests.app.browser.server import Server

pytestmark = pytest.mark.slow

SCREENS = (
    "start",
    "leak",
    "attacker",
    "drawer",
    "leaking",
    "stored",
    "trade-off",
    "asking",
    "running",
    "runs",
    "machine",
)
LEAK = (
    "/leak?whose=test-7&against=none,udp-fedavg:0.1&attacks=map,inverting-gradients&many=2&iterations=10"
    "&each=true&closer=curves"
)
TRADE_OFF = {"trade-off": "/tradeoff", "asking": "/tradeoff?methods=fedceo,dp-fedavg&noises=1%3B2&steps=0.3&rounds=3"}
SIDES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BAD = ("serious", "critical")
LOOK = """async ([bad, known]) => {
    document.querySelectorAll('details').forEach(one => { one.open = true; });
    const found = await axe.run(document, { resultTypes: ['violations'] });
    const place = target => target.flat().reduce((root, one) => (root.shadowRoot ?? root).querySelector(one), document);
    return found.violations.filter(rule => bad.includes(rule.impact)).flatMap(rule => rule.nodes.map(node => [
        rule.id, node.target.join(' '), `${node.html.slice(0, 300)}\\n    ${node.failureSummary}`,
        known.findIndex(([id, selector]) => id === rule.id && place(node.target)?.closest(selector)),
    ]));
}"""


@dataclass(frozen=True)
class Known:
    """A violation in the page of Streamlit or Plotly that no text, theme or setting of ours can fix."""

    rule: str
    within: str  # a selector of the element or of one around it
    reason: str


KNOWN: tuple[Known, ...] = ()


@dataclass(frozen=True)
class AxeFinding:
    """An element that violates a rule."""

    rule: str
    target: str
    words: str
    known: int  # its index in KNOWN, or -1


def tour(tab: TryPage, server: Server) -> Iterator[str]:
    """Open every screen in one tab, and yield the name of each once it is drawn."""
    tab.page.goto(server.address)
    expect(tab.page.locator(".stops .word")).not_to_be_empty()
    tab.page.wait_for_function(REDRAWN)
    yield "start"
    tab.page.goto(f"{server.address}/leak")
    expect(tab.page.get_by_role("img").first).to_be_visible()
    yield "leak"
    tab.page.locator(".st-key-leak-attacker button").first.click()
    tab.page.get_by_role("button", name=attackers.CHOOSE).click()
    expect(tab.page.get_by_role("combobox", name=attackers.NAMES)).to_be_visible()
    tab.page.wait_for_function(REDRAWN)
    yield "attacker"
    tab.page.keyboard.press("Escape")
    tab.page.locator(".st-key-leak-method button").click()
    drawer = tab.page.get_by_role("dialog", name=protections.TITLE)
    drawer.get_by_text("no protection", exact=True).click()
    expect(drawer.get_by_role("button", name="SCAFFOLD")).to_be_visible()
    tab.page.wait_for_function(REDRAWN)
    yield "drawer"
    tab.page.goto(f"{server.address}{LEAK}")
    expect(tab.page.get_by_text("What is in the upload?")).to_be_visible()
    attack = tab.page.locator(".st-key-leak-attack button")
    chart = tab.page.locator(".st-key-chart-psnr")
    expect(attack.or_(chart).first).to_be_visible()  # stored results need no click
    if not chart.count():
        attack.click()
    expect(tab.page.locator(".wiper").first).to_be_visible()
    expect(chart).to_be_visible()
    yield "leaking"
    expect(tab.visit().chart().locator(".main-svg").first).to_be_visible()
    yield "stored"
    for name, link in TRADE_OFF.items():
        tab.page.goto(f"{server.address}{link}")
        expect(tab.page.locator(".st-key-tradeoff-run button")).to_be_visible()
        expect(tab.page.locator(".st-key-tradeoff-table" if name == "trade-off" else "table").first).to_be_visible()
        tab.page.wait_for_function(REDRAWN)
        yield name
    tab.visit(**LONG, seed=12).ask()
    tab.watch()
    yield "running"
    tab.go("Runs and machine")
    expect(tab.page.get_by_role("heading", name="FedAvg").first).to_be_visible()
    yield "runs"
    server.rest()
    tab.page.get_by_role("radio", name="Machine").click()
    expect(tab.button("Check again")).to_be_enabled()
    yield "machine"


def describe(violations: Sequence[AxeFinding]) -> str:
    return "\n".join(f"{violation.rule}: {violation.target}\n    {violation.words}" for violation in violations)


def findings(page: Page, axe: str) -> list[AxeFinding]:
    page.evaluate(axe)
    rows = page.evaluate(LOOK, [BAD, [(known.rule, known.within) for known in KNOWN]])
    return [AxeFinding(*row) for row in rows]


@pytest.fixture(scope="module")
def violations(
    regular: BrowserContext, server: Server, axe: str
) -> Iterator[Mapping[tuple[str, str], list[AxeFinding]]]:
    """The violations that axe finds, by colour scheme and screen."""
    by_screen: dict[tuple[str, str], list[AxeFinding]] = {}
    for side in SIDES:
        with regular.new_page() as page:
            page.emulate_media(color_scheme=side)
            for screen in tour(TryPage(page, server.address), server):
                by_screen[side, screen] = findings(page, axe)
    yield by_screen


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_no_serious_violation(
    violations: Mapping[tuple[str, str], list[AxeFinding]], screen: str, side: str
) -> None:
    new = [violation for violation in violations[side, screen] if violation.known < 0]
    assert not new, "\n" + describe(new)


def test_each_known_violation_still_occurs(violations: Mapping[tuple[str, str], list[AxeFinding]]) -> None:
    seen = {violation.known for screen in violations.values() for violation in screen}
    gone = [known for number, known in enumerate(KNOWN) if number not in seen]
    assert not gone, f"fixed: take it off the list: {gone}"


def test_axe_finds_a_violation(tab: TryPage, axe: str) -> None:
    tab.page.set_content('<html lang="en"><title>A page</title><main><h1>A page</h1><button></button></main></html>')
    assert [(violation.rule, violation.known) for violation in findings(tab.page, axe)] == [("button-name", -1)]
