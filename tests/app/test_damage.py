"""c01: the list of runs and Try show a damaged store, with every undamaged run in the list."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.session import messages, services
from engine.errors import LeakLensError
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen
from tests.contracts.goldens import entries
from tests.contracts.homes import copied
from tests.damage import damage_store

RUNS = {known["id"] for known in entries("home", "runs").values()}
DATA_ERRORS = messages.DATA_ERRORS  # before a fixture empties it


def shown(screen: str, run: str = "") -> AppTest:
    page = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), screen)
    if run:
        page.query_params["run"] = run
    page.run()
    assert not page.exception, [(screen, run), page.exception]
    return page


def check_pages(home: Path, seed: int) -> None:
    """Open the list and Try with every damaged run."""
    damaged = damage_store(home / "leaklens.db", seed)
    services.shared.clear()
    st.cache_data.clear()
    with suppress(LeakLensError):
        assert services.shared().ready(PATIENCE_S)
    keys = {str(button.key) for button in shown("runs").button}
    for run in RUNS - damaged:
        assert any(run in key for key in keys), run
    for run in sorted(damaged):
        shown("try", run)


@pytest.fixture
def as_outside(monkeypatch: pytest.MonkeyPatch, resting: None) -> None:
    """Damaged data are shown as such, as they are outside the tests."""
    monkeypatch.setattr(messages, "DATA_ERRORS", DATA_ERRORS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 8, 13, 19, 38, 55])
def test_c01_the_pages_show_a_damaged_store(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_outside: None
) -> None:
    home = copied(tmp_path)
    monkeypatch.setenv("LEAKLENS_HOME", str(home))
    check_pages(home, seed)


@pytest.mark.long
def test_c01_the_pages_show_many_damaged_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_outside: None
) -> None:
    for seed in range(1000, 1060):
        home = copied(tmp_path / str(seed))
        monkeypatch.setenv("LEAKLENS_HOME", str(home))
        check_pages(home, seed)
