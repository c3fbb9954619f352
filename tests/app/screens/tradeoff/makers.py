"""What tests of the Trade-off screen share: a visit, what a page shows, and points that came to something."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from engine.events import Event, Failed, Finished, Measured, Spent, Started
from engine.jobs.process_id import ProcessId
from engine.specs.sweep import SweepPoint
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen, press


def visit(asked: TradeoffSettings | None = None, **params: str) -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in {**(tradeoff_settings.link(asked) if asked else {}), **params}.items():
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
    return {str(one.key) for one in page.button}


def standing(asked: TradeoffSettings) -> list[str]:
    return list(services.standings([one.id for one in tradeoff_settings.laid_out(asked)]).values())


def link(page: AppTest) -> dict[str, str]:
    return {name: str(value) for name, value in page.query_params.items()}


def charts(page: AppTest) -> list[str]:
    """The alternative text of every chart."""
    return [str(one.proto.alt) for one in page.get("plotly_chart")]


def captions(page: AppTest) -> str:
    return "\n".join(str(one.value) for one in page.caption)


def come_to(point: SweepPoint, accuracy: float, personal: float | None = None, epsilon: float = 3.0) -> None:
    """Let a run end as if it had been computed."""
    unit = point.spec.method.unit()
    absent = {"aggregate": "the server sees each"} if point.method == "fedceo" else {}
    facts = {"unit": unit, "delta": 1e-5, "guarantee": {"status": "formal", "reason": "so", "absent": absent}}
    told: list[Event] = [Started(point.id, point.spec.canonical(), facts), Measured(2, "accuracy", accuracy)]
    told += [Measured(2, "accuracy", personal, "personal")] if personal is not None else []
    value = epsilon if unit else None
    told += [Spent(2, "outsider", value, "user", "zero-out", 1e-5, "prv", "poisson", "", "" if unit else "nothing is")]
    told += [Spent(2, "server", None, "user", "zero-out", 1e-5, "none", "all", "", "every upload is seen")]
    tell(point, [*told, Finished(2, 1.0)])


def breaks(point: SweepPoint, reason: str = "it broke", remedy: str = "Ask again") -> None:
    """Let a run fail after it has measured and spent a round, as most do."""
    told: list[Event] = [Started(point.id, point.spec.canonical(), {"unit": point.spec.method.unit(), "delta": 1e-5})]
    told += [Measured(1, "accuracy", 0.123), Spent(1, "outsider", 1.0, "user", "zero-out", 1e-5, "prv", "poisson")]
    tell(point, [*told, Failed(reason, remedy)])


def tell(point: SweepPoint, told: list[Event]) -> None:
    lease = services.store().take(ProcessId.me(), 999, only={point.id})
    assert lease
    services.store().append(lease, told)


def tradeoff_of(page: AppTest) -> TradeoffSettings:
    found: TradeoffSettings = page.session_state["tradeoff"]
    return found
