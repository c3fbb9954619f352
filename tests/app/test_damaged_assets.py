"""c11: the pages with a damaged file of assets/: an example that cannot be read is left out, with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.session import messages, services
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen, text
from tests.damage_assets import copy_assets, damage_assets, empty_caches, read_from

SCREENS = ("leak", "try", "tradeoff", "runs")
DATA_ERRORS = messages.DATA_ERRORS  # before a fixture empties it


@pytest.fixture(autouse=True)
def as_outside(home: Path, monkeypatch: pytest.MonkeyPatch, resting: None):
    """Damaged data are shown as such, as they are outside the tests."""
    monkeypatch.setattr(messages, "DATA_ERRORS", DATA_ERRORS)
    yield
    empty_caches()


def show(screen: str) -> str:
    page = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), screen).run()
    assert not page.exception, (screen, page.exception)
    shown = text(page)
    assert "Error:" not in shown and "should not happen" not in shown, shown
    return shown


def check_pages(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open every screen, before the shelves are loaded and after."""
    damage_assets(copy_assets(folder), seed, listed=seed % 2 == 0)
    read_from(folder, monkeypatch)
    st.cache_data.clear()
    assert services.shared().ready(PATIENCE_S)
    for screen in SCREENS:
        show(screen)
    with monkeypatch.context() as loading:
        loading.setattr(services.Services, "ready", lambda shared, wait=0.0: False)
        for screen in SCREENS:
            show(screen)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_c11_pages_show_damaged_assets(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_pages(tmp_path, seed, monkeypatch)


@pytest.mark.long
def test_c11_pages_show_many_damaged_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(4000, 4100):
        check_pages(tmp_path / str(seed), seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "screen"),
    [("gallery/dp-sgd.json", "runs"), ("leaks/results.json.xz", "leak"), ("frontiers/results.json", "tradeoff")],
)
def test_c11_a_page_names_its_damaged_example(
    name: str, screen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = copy_assets(tmp_path) / name
    file.unlink()
    file.write_text("{}", encoding="utf-8")
    read_from(tmp_path, monkeypatch)
    services.shared()
    monkeypatch.setattr(services.Services, "ready", lambda shared, wait=0.0: False)
    assert f"{name}: differs from the file that was published. Make it again" in show(screen)
