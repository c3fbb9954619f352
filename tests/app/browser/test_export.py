"""An exported page opens from the disk without a network. Its scrubber works, and axe finds no serious violation."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Request, expect

from app.export import page as export_page
from engine.events import Finished, Pictured, Started
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.test_axe import SIDES, describe, findings
from tests.app.export.makers import RUN, attack_on, stored_run
from tests.app.makers import RunMaker
from tests.app.screens.leak.makers import judged, seen

pytestmark = pytest.mark.slow

MOMENTS = 6


def picture(shade: int) -> str:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, 90, 200 - shade)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def store_attack(spec: AttackSpec, store: Store) -> None:
    """Store an attack with another picture at every moment."""
    path = []
    for moment in range(MOMENTS):
        shown = (picture(30 * moment),)
        path.append(Pictured("map", moment, MOMENTS - 1, 0, 1.0, shown, (0,), (10.0 + moment,)))
    store.submit(spec.id, spec.canonical(), {})
    started = Started(spec.id, spec.canonical(), {"classes": []})
    RunMaker(store).tell(
        spec.id, started, seen(), *path, judged([10.0 + MOMENTS - 1], "not converged"), Finished(0, 1.0)
    )


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    run = RunSpec(**RUN)
    store = Store(home)
    stored_run(store, run)
    for seed in range(2):
        store_attack(attack_on(run, seed=seed), store)
    path = tmp_path / "page.html"
    path.write_text(export_page(store, run.id), encoding="utf-8")
    store.close()
    return path


@pytest.fixture
def opened(chromium: Browser, file: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page in a browser without a network, and its script errors, console messages and requests."""
    with chromium.new_context(offline=True, viewport={"width": 1000, "height": 900}) as profile:
        page = profile.new_page()
        problems = list[str]()

        def record_request(request: Request) -> None:
            if not request.url.startswith(("file:", "data:")):
                problems.append(request.url)

        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", record_request)
        page.goto(file.as_uri())
        yield page, problems


def shown(page: Page) -> list[str | None]:
    """Return the source of every reconstruction."""
    return [image.get_attribute("src") for image in page.locator("[id^=cell-] img").all()]


def test_the_scrubber_moves_every_picture_by_keyboard(opened: tuple[Page, list[str]]) -> None:
    page, problems = opened
    slider = page.get_by_role("slider", name="How far each attack has come")
    expect(slider).to_be_visible()
    ends = shown(page)
    mark = page.locator(".mark").first
    right = float(mark.get_attribute("x1") or "nan")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#now")).to_have_text("0 % of each attack")
    expect(page.locator(".near").first).to_have_text("10.0 dB")
    first = shown(page)
    assert len(ends) == 2 and all(end != start for end, start in zip(ends, first, strict=True))
    assert float(mark.get_attribute("x1") or "nan") < right
    page.keyboard.press("ArrowRight")
    expect(page.locator("#now")).to_have_text("20 % of each attack")
    expect(slider).to_have_attribute("aria-valuetext", "20 % of each attack")
    assert shown(page)[0] not in (first[0], ends[0])
    assert page.evaluate("document.querySelector('[id^=cell-] img').naturalWidth") == 4
    assert problems == []


def test_play_stops_at_the_end(opened: tuple[Page, list[str]]) -> None:
    page, problems = opened
    ends = shown(page)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator("#now")).to_have_text("100 % of each attack")
    assert shown(page) == ends and problems == []


def test_with_reduced_motion_nothing_plays(opened: tuple[Page, list[str]]) -> None:
    page, problems = opened
    page.emulate_media(reduced_motion="reduce")
    step = page.get_by_role("button", name="Next moment")
    for share in (20, 40):
        step.click()
        expect(page.locator("#now")).to_have_text(f"{share} % of each attack")
    assert problems == []


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("width", [1440, 800])
def test_axe_finds_no_serious_violation(opened: tuple[Page, list[str]], axe: str, side: str, width: int) -> None:
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=side)  # type: ignore[arg-type]
    violations = findings(page, axe)
    assert not violations, describe(violations)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
