"""The dashboard under test: each test has its own home and its own kitchen, whose engine it may put to rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from engine.environment import ROOT
from engine.errors import LeakLensError
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from tests.app.makers import Asker
from tests.app.reading import open_screen

MAIN = ROOT / "app" / "main.py"
PATIENCE_S = 60  # for one pass over a page, on a busy machine

Screen = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def kitchen_of_its_own() -> Iterator[None]:
    """What visitors share is shared by nobody here: a kitchen made in a test is closed with its workers after it."""
    yield
    services.shared.clear()  # closes it, too
    st.cache_data.clear()


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker process: what is asked waits, and a test itself tells what a run told."""
    monkeypatch.setattr(Supervisor, "start", lambda supervisor: supervisor)


@pytest.fixture
def screen() -> Screen:
    """Open a screen once the shelves are loaded: `screen("runs")`; what is given by name lies in the session before."""

    def screen(name: str, **held: object) -> AppTest:
        with suppress(LeakLensError):  # the page itself says what is wrong with the home
            assert services.shared().ready(PATIENCE_S)
        page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
        for key, value in held.items():
            page.session_state[key] = value
        return open_screen(page, name).run()

    return screen


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """The store of this test, beside the one of the page."""
    store = Store()
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> Asker:
    """Runs that stand as they are told to: `ask("failed", seed=3)` says the id of one."""
    return Asker(store)


@pytest.fixture
def small() -> TradeoffSettings:
    """Two methods at two noises with two seeds, and a reference."""
    run = {**tradeoff_settings.usual().run, "rounds": 2, "clients": 20, "sampled": 4}
    return replace(
        tradeoff_settings.usual(), run=run, methods=("udp-fedavg", "ppsgd"), noises="0.5, 2", steps="", seeds=2
    )
