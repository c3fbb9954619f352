"""Made-up events of attacks for tests: guesses one after another, with the final PSNR that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.testing.v1 import AppTest

from app.screens.leak.settings import LeakSettings
from app.session import services
from engine.events import Event, Finished, Judged, Pictured, Seen, Started
from engine.jobs.process_id import ProcessId
from engine.leakage.compatibility import problem
from engine.specs import attack_grid
from engine.specs.attack import AttackSpec
from tests.app.conftest import PATIENCE_S

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
GREY = 14.0
FACTS = {"probe": True, "pictures": 1, "steps": 1, "trained": 0, "noise-to-signal": 0.25}


def seen(many: int = 1) -> Seen:
    facts = {**FACTS, "pictures": many}
    return Seen("server", 1, 0, facts, (PIXEL,) * many, {"psnr": (GREY,) * many})


def guess(iteration: int, psnr: Sequence[float], of: int = 20, restart: int = 0, loss: float = 1.0) -> Pictured:
    return Pictured("map", iteration, of, restart, loss, (PIXEL,) * len(psnr), tuple(range(len(psnr))), tuple(psnr))


def judged(psnr: Sequence[float], state: str = "converged", restart: int = 0) -> Judged:
    """The end of an attack. From 22 dB a picture comes back; from 17 dB its outlines do; below it is not recognised."""
    many = len(psnr)
    similarity = [similar(value) for value in psnr]
    numbers = {
        "psnr": tuple(psnr),
        "ssim": tuple(ssim for ssim, _ in similarity),
        "lpips": tuple(lpips for _, lpips in similarity),
    }
    trivial = {"psnr": (GREY,) * many, "ssim": (0.1,) * many, "lpips": (0.8,) * many}
    reason = "" if state == "converged" else "it leaves 60% of the upload unexplained"
    return Judged("map", state, reason, restart, tuple(range(many)), (3,) * many, numbers, trivial, {}, (), 0.0)


def similar(psnr: float) -> tuple[float, float]:
    """SSIM and LPIPS of a picture with this PSNR."""
    if psnr >= 22:
        return 0.9, 0.05
    return (0.4, 0.4) if psnr >= 17 else (0.05, 0.8)


def finished_attack(run: str, psnr: Sequence[float], state: str = "converged") -> list[Event]:
    """Return all events of an attack that finished."""
    many = len(psnr)
    return [
        Started(run, {}, {}), seen(many), guess(0, [GREY] * many), guess(10, [GREY + 1] * many), guess(20, psnr),
        judged(psnr, state), Finished(0, 1.5),
    ]  # fmt: skip


def visit(leak: LeakSettings, panel: str = "cliff") -> AppTest:
    """Open one of the panels below the grid, without the rest of the page."""
    assert services.shared().ready(PATIENCE_S)
    code = "from app.screens.leak import closer, results\ncloser.panel(results.grid_view())"
    page = AppTest.from_string(code, default_timeout=PATIENCE_S)
    page.session_state["leak"] = leak.with_(closer=panel)
    page.run()
    assert not page.exception
    return page


def append_events(run: str, events: Sequence[Event]) -> None:
    """Append events to the store as the worker that holds the lease."""
    lease = services.store().take(ProcessId.me(), 99, only={run})
    assert lease and lease.run == run
    services.store().append(lease, events)


def default_cells() -> list[AttackSpec]:
    """The grid of a first visit, in the order to submit, without attacks that do not fit."""
    specs = [request.spec for request in attack_grid.in_order(LeakSettings.default().grid.requests())]
    return [spec for spec in specs if spec is not None and problem(spec) is None]
