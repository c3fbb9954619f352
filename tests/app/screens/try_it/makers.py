"""Opens Try, presses its buttons, and stores events of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamlit.testing.v1 import AppTest

from app.screens.try_it.settings import TrySettings
from app.session import services
from engine.events import Event
from engine.jobs.process_id import ProcessId
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen


def visit(params: Mapping[str, Any] | None = None, name: str = "try") -> AppTest:
    """Open a link to Try, or to the old address `lab`."""
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for parameter, value in (params or {}).items():
        page.query_params[parameter] = str(value)
    page = open_screen(page, name).run()
    assert not page.exception
    return page


def clicked(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception
    return page


def settings_of(page: AppTest) -> TrySettings:
    settings = page.session_state["try"]
    assert isinstance(settings, TrySettings)
    return settings


def link_of(page: AppTest) -> dict[str, str]:
    """The parameters in the address."""
    return {name: values[0] if isinstance(values, list) else values for name, values in page.query_params.items()}


def record(run: str, events: Sequence[Event]) -> None:
    """Store the events of a waiting run, as a worker does."""
    lease = services.store().take(ProcessId.me(), 99, only={run})
    assert lease and lease.run == run
    services.store().append(lease, events)


def statuses() -> dict[str, str]:
    """The status of every run and attack in the store."""
    return {row.id: row.status for row in services.store().runs()}
