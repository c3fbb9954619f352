"""The points of the frontier: each with its status and result, from the store or a stored example; and their charts."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from app.charts import frontiers as frontier_chart
from app.charts.tradeoff import Frontier
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from engine.errors import Damaged, LeakLensError, UnknownName
from engine.examples import sweep
from engine.examples.sweep import SweepExample
from engine.jobs.status import MOVING
from engine.results.summary import PointResult, point_result
from engine.specs.sweep import SweepPlace, SweepPoint

STOPPED = ("cancelled", "interrupted")
STORED = "stored"
DAMAGED = "damaged"  # the run finished, but its record cannot be read
TO_RUN = ("", "failed", *STOPPED, DAMAGED)  # statuses of points that "Run" submits


@dataclass(frozen=True)
class TradeoffCell:
    """One point, with the status and the result of its run."""

    point: SweepPlace
    status: str = ""  # as in the store, or `damaged`; `stored` for a stored example that the store does not have
    result: PointResult | None = None
    problem: str = ""
    shipped: bool = False  # whether the result comes from a stored example

    @property
    def moving(self) -> bool:
        return self.status in MOVING

    @property
    def known(self) -> bool:
        """Whether the point has a result and needs no run."""
        return self.result is not None and self.status not in TO_RUN


@dataclass(frozen=True)
class TradeoffView:
    """The settings and points of one pass, before any result is read."""

    settings: TradeoffSettings
    points: tuple[SweepPoint, ...]
    titles: Mapping[str, str]
    headless: tuple[str, ...] = ()  # methods in which no client uploads its last layer
    live: bool = True  # whether the engine is ready: the stored example needs none
    stale: bool = False  # whether the current settings cannot run, so that this view shows the previous ones


def read(points: Sequence[SweepPlace]) -> tuple[TradeoffCell, ...]:
    """Return the cell of each point. The statuses take one query, and each result is read once.

    A stored example is shown while the store has no result of its own.
    """
    statuses = services.statuses([point.id for point in points])
    examples = stored()
    cells = []
    for point in points:
        cell = _read_from_store(point, statuses[point.id])
        if cell.result is None and point.id in examples:
            result = replace(examples[point.id], point=point)
            status = cell.status if cell.moving else STORED  # an unfinished run does not hide a finished example
            cell = replace(cell, status=status, result=result, problem="", shipped=True)
        cells.append(cell)
    return tuple(cells)


def _read_from_store(point: SweepPlace, status: str) -> TradeoffCell:
    if status not in ("finished", "failed"):
        return TradeoffCell(point, status)
    try:
        report = services.report_of(point.id)
    except UnknownName:  # the run was deleted after its status was read
        return TradeoffCell(point)
    except Damaged as error:
        return TradeoffCell(point, DAMAGED, None, error.message)
    if status == "failed":
        # The accuracy before the failure is left out: it is not that of the requested rounds.
        error_text = str(LeakLensError(report.get("error") or "", report.get("remedy") or ""))
        return TradeoffCell(point, status, None, error_text)
    return TradeoffCell(point, status, point_result(point, report))


def stored() -> dict[str, PointResult]:
    """Return the results that ship with LeakLens, by run."""
    example = sweep.sweep_example()
    return {result.point.id: result for result in example.results} if example else {}


def of_example(example: SweepExample) -> tuple[TradeoffCell, ...]:
    """Return the cells of the stored frontier. They need no engine."""
    return tuple(TradeoffCell(result.point, STORED, result, shipped=True) for result in example.results)


# --- the charts --------------------------------------------------------------------------------------------


def frontiers(
    cells: Sequence[TradeoffCell], titles: Mapping[str, str], settings: TradeoffSettings, headless: Container[str] = ()
) -> tuple[Frontier, ...]:
    """Return one frontier for each unit, clients first."""
    results = [cell.result for cell in cells if cell.result]
    return frontier_chart.frontiers(results, titles, settings.eyes, settings.own, headless)


def several_steps(cells: Sequence[TradeoffCell]) -> bool:
    """Return whether a method runs with more than one server step at the same noise."""
    with_step = {(cell.point.name, cell.point.noise, cell.point.step) for cell in cells}
    without_step = {(name, noise) for name, noise, _ in with_step}
    return len(with_step) > len(without_step)


def has_personal_models(cells: Sequence[TradeoffCell]) -> bool:
    """Return whether a method has personal models, one for each client."""
    return any(cell.result and cell.result.personal is not None for cell in cells)
