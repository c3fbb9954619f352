"""An exported page opens from the disk without a network; its scrubber moves the pictures, and axe finds no barrier."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from app.export import page as made
from engine.events import Finished, Pictured, Started
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.browser.conftest import PATIENCE_MS
from tests.app.browser.test_axe import SIDES, findings
from tests.app.export.makers import RUN, asked_run, attack_on
from tests.app.makers import Asker
from tests.app.screens.leak.makers import judged, seen

pytestmark = pytest.mark.slow

MOMENTS = 6


def picture(shade: int) -> str:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, 90, 200 - shade)).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")


def forming(spec: AttackSpec, store: Store) -> None:
    """An attack whose picture changes with every moment."""
    path = [Pictured("map", at, MOMENTS - 1, 0, 1.0, (picture(30 * at),), (0,), (10.0 + at,)) for at in range(MOMENTS)]
    store.submit(spec.id, spec.canonical(), {})
    begun = Started(spec.id, spec.canonical(), {"classes": []})
    Asker(store).tell(spec.id, begun, seen(), *path, judged([10.0 + MOMENTS - 1], "not converged"), Finished(0, 1.0))


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    run = RunSpec(**RUN)
    store = Store(home)
    asked_run(store, run)
    for seed in range(2):
        forming(attack_on(run, seed=seed), store)
    path = tmp_path / "page.html"
    path.write_text(made(store, run.id), encoding="utf-8")
    store.close()
    return path


@pytest.fixture
def opened(chromium: Browser, file: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page in a browser without a network, and everything that went wrong or out."""
    with chromium.new_context(offline=True, viewport={"width": 1000, "height": 900}) as profile:
        page, odd = profile.new_page(), list[str]()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: odd.append(str(error)))
        page.on("console", lambda said: odd.append(said.text))
        page.on(
            "request", lambda asked: odd.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None
        )
        page.goto(file.as_uri())
        yield page, odd


def shown(page: Page) -> list[str | None]:
    """The source of every reconstruction."""
    return [one.get_attribute("src") for one in page.locator("[id^=cell-] img").all()]


def test_the_scrubber_moves_every_picture_by_keyboard(opened: tuple[Page, list[str]]) -> None:
    page, odd = opened
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
    assert len(ends) == 2 and all(one != other for one, other in zip(ends, first, strict=True))
    assert float(mark.get_attribute("x1") or "nan") < right
    page.keyboard.press("ArrowRight")
    expect(page.locator("#now")).to_have_text("20 % of each attack")
    expect(slider).to_have_attribute("aria-valuetext", "20 % of each attack")
    assert shown(page)[0] not in (first[0], ends[0])
    assert page.evaluate("document.querySelector('[id^=cell-] img').naturalWidth") == 4
    assert odd == []


def test_play_runs_to_the_end_and_stops(opened: tuple[Page, list[str]]) -> None:
    page, odd = opened
    ends = shown(page)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator("#now")).to_have_text("100 % of each attack")
    assert shown(page) == ends and odd == []


def test_with_reduced_motion_nothing_plays(opened: tuple[Page, list[str]]) -> None:
    page, odd = opened
    page.emulate_media(reduced_motion="reduce")
    step = page.get_by_role("button", name="Next moment")
    for share in (20, 40):
        step.click()
        expect(page.locator("#now")).to_have_text(f"{share} % of each attack")
    assert odd == []


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("width", [1440, 800])
def test_nothing_serious(opened: tuple[Page, list[str]], axe: str, side: str, width: int) -> None:
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=side)  # type: ignore[arg-type]
    found = findings(page, axe)
    assert not found, "\n".join(f"{one.rule}: {one.target}\n    {one.words}" for one in found)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
