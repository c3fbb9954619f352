"""Fixtures of the dashboard tests: each test has its own home and its own services, with or without workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff.settings import TradeoffSettings
from app.session import messages, services
from engine.environment import ROOT
from engine.errors import LeakLensError
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from tests.app.makers import RunMaker
from tests.app.reading import open_screen

MAIN = ROOT / "app" / "main.py"
PATIENCE_S = 60  # at most, for one pass over a page on a busy machine

Screen = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def own_services() -> Iterator[None]:
    """Close the shared services and their workers after each test, so that no two tests share them."""
    yield
    services.shared.clear()  # closes them, too
    st.cache_data.clear()


@pytest.fixture(autouse=True)
def errors_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the program must not look like damaged data."""
    monkeypatch.setattr(messages, "DATA_ERRORS", ())


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker process: runs stay queued, and the test appends their events."""
    monkeypatch.setattr(Supervisor, "start", lambda supervisor: supervisor)


@pytest.fixture
def screen() -> Screen:
    """Open a screen when the shelves are loaded: `screen("runs")`. Keyword arguments are in the session before."""

    def screen(name: str, **state: object) -> AppTest:
        with suppress(LeakLensError):  # the page itself shows the error of the home
            assert services.shared().ready(PATIENCE_S)
        page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
        for key, value in state.items():
            page.session_state[key] = value
        return open_screen(page, name).run()

    return screen


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """The store of this test. The page has its own."""
    store = Store()
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> RunMaker:
    """Creates runs with a given status: `ask("failed", seed=3)` returns the id of one."""
    return RunMaker(store)


@pytest.fixture
def small() -> TradeoffSettings:
    """Two methods at two noises with two seeds, and a baseline."""
    run = {**TradeoffSettings.default().run, "rounds": 2, "clients": 20, "sampled": 4}
    return TradeoffSettings.default().with_(
        run=run, methods=("udp-fedavg", "ppsgd"), noises="0.5, 2", steps="", seeds=2, eyes="outsider", axis="noise"
    )
