"""Helpers for tests of the Trade-off screen: open the page, read it, and give points a result."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from engine.events import Event, Failed, Finished, Measured, Spent, Started
from engine.jobs.process_id import ProcessId
from engine.specs.sweep import SweepPoint
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen, press


def visit(settings: TradeoffSettings | None = None, **params: str) -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in {**(settings.link() if settings else {}), **params}.items():
        page.query_params[name] = value
    open_screen(page, "tradeoff")
    page.run()
    assert not page.exception
    return page


def clicked(page: AppTest, key: str) -> AppTest:
    press(page, key)
    assert not page.exception
    return page


def keys(page: AppTest) -> set[str]:
    return {str(button.key) for button in page.button}


def statuses(settings: TradeoffSettings) -> list[str]:
    """Return the status of each point."""
    ids = [point.id for point in sweep_points.all_points(settings)]
    return list(services.statuses(ids).values())


def link(page: AppTest) -> dict[str, str]:
    return {name: str(value) for name, value in page.query_params.items()}


def charts(page: AppTest) -> list[str]:
    """Return the alternative text of every chart."""
    return [str(chart.proto.alt) for chart in page.get("plotly_chart")]


def captions(page: AppTest) -> str:
    return "\n".join(str(caption.value) for caption in page.caption)


def finish(point: SweepPoint, accuracy: float, personal: float | None = None, epsilon: float = 3.0) -> None:
    """Give a run the events of a finished run with this result."""
    unit = point.spec.method.unit()
    absent = {"aggregate": "the server sees each"} if point.method == "fedceo" else {}
    facts = {"unit": unit, "delta": 1e-5, "guarantee": {"status": "formal", "reason": "so", "absent": absent}}
    events: list[Event] = [Started(point.id, point.spec.canonical(), facts), Measured(2, "accuracy", accuracy)]
    if personal is not None:
        events.append(Measured(2, "accuracy", personal, "personal"))
    value = epsilon if unit else None
    reason = "" if unit else "nothing is"
    events.append(Spent(2, "outsider", value, "user", "zero-out", 1e-5, "prv", "poisson", "", reason))
    events.append(Spent(2, "server", None, "user", "zero-out", 1e-5, "none", "all", "", "every upload is seen"))
    append_events(point, [*events, Finished(2, 1.0)])


def fail(point: SweepPoint, reason: str = "it broke", remedy: str = "Ask again") -> None:
    """Give a run the events of a failure after the first round, as in most failures."""
    facts = {"unit": point.spec.method.unit(), "delta": 1e-5}
    events: list[Event] = [
        Started(point.id, point.spec.canonical(), facts),
        Measured(1, "accuracy", 0.123),
        Spent(1, "outsider", 1.0, "user", "zero-out", 1e-5, "prv", "poisson"),
        Failed(reason, remedy),
    ]
    append_events(point, events)


def append_events(point: SweepPoint, events: list[Event]) -> None:
    """Append events to the store as the worker that holds the lease."""
    lease = services.store().take(ProcessId.me(), 999, only={point.id})
    assert lease
    services.store().append(lease, events)


def tradeoff_of(page: AppTest) -> TradeoffSettings:
    settings: TradeoffSettings = page.session_state["tradeoff"]
    return settings
