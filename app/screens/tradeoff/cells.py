"""Every point of the frontier as it stands, and what all of them come to: read from the store, else as they ship."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from app.charts.tradeoff import Frontier, TradeoffLine
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services
from app.texts import sweep as sweep_texts
from engine.errors import Damaged, LeakLensError, UnknownName
from engine.examples import sweep
from engine.examples.sweep import SweepExample
from engine.results.summary import PointResult, PointSummary, point_result, summaries
from engine.specs.sweep import SweepPlace, SweepPoint

MOVING = ("queued", "running")
STOPPED = ("cancelled", "interrupted")
STORED = "stored"
DAMAGED = "damaged"  # the store says that it finished, and not what it told
ASK = ("", "failed", *STOPPED, DAMAGED)  # what a click asks for


@dataclass(frozen=True)
class TradeoffCell:
    """One point: where its run stands, and what it came to."""

    point: SweepPlace
    status: str = ""  # as the store has it, or `damaged`; where nobody asked it, `stored` if it ships
    result: PointResult | None = None
    problem: str = ""
    shipped: bool = False  # whether the result is the stored one

    @property
    def moving(self) -> bool:
        return self.status in MOVING

    @property
    def known(self) -> bool:
        """Whether a click need not ask for it."""
        return self.result is not None and self.status not in ASK


@dataclass(frozen=True)
class TradeoffView:
    """What one pass shows: the points, before anything is read of what they came to."""

    asked: TradeoffSettings
    points: tuple[SweepPoint, ...]
    titles: Mapping[str, str]
    headless: tuple[str, ...] = ()  # methods in which nobody shares a last layer
    live: bool = True  # whether the engine is there: the stored example needs none
    stale: bool = False  # whether the question has become one that cannot be asked


def read(points: Sequence[SweepPlace]) -> tuple[TradeoffCell, ...]:
    """All of them: one look at where they stand, and each result read once.

    What ships is shown for as long as the store has nothing of its own.
    """
    standing = services.standings([one.id for one in points])
    ship = stored()
    found = []
    for point in points:
        cell = _computed(point, standing[point.id])
        if cell.result is None and point.id in ship:
            known = replace(ship[point.id], point=point)
            cell = replace(cell, status=cell.status or STORED, result=known, shipped=True)
        found.append(cell)
    return tuple(found)


def _computed(point: SweepPlace, status: str) -> TradeoffCell:
    """As the store has it."""
    if status not in ("finished", "failed"):
        return TradeoffCell(point, status)
    try:
        told = services.reported(point.id)
    except UnknownName:  # deleted between two looks
        return TradeoffCell(point)
    except Damaged as error:
        return TradeoffCell(point, DAMAGED, None, error.message)
    if status == "failed":  # what it measured before is not what the question comes to
        return TradeoffCell(point, status, None, str(LeakLensError(told.get("error") or "", told.get("remedy") or "")))
    return TradeoffCell(point, status, point_result(point, told))


def stored() -> dict[str, PointResult]:
    """The points that ship with LeakLens, by their runs."""
    ship = sweep.frontier()
    return {one.point.id: one for one in ship.results} if ship else {}


def of_example(ship: SweepExample) -> tuple[TradeoffCell, ...]:
    """The stored frontier by itself: it needs no engine."""
    return tuple(TradeoffCell(one.point, STORED, one, shipped=True) for one in ship.results)


# --- what they come to -------------------------------------------------------------------------------------


def frontiers(
    cells: Sequence[TradeoffCell], titles: Mapping[str, str], asked: TradeoffSettings, headless: Container[str] = ()
) -> tuple[Frontier, ...]:
    """One picture for each unit that is protected, the client first: their noise and their ε mean other things."""
    found = summaries([cell.result for cell in cells if cell.result], asked.own)
    plain = _lines([spot for spot in found if spot.noise is None], titles, asked.own, headless)
    units = sorted({spot.unit or "user" for spot in found if spot.noise is not None}, key=("user", "record").index)
    lines = {unit: _lines(_protecting(found, unit), titles, asked.own, headless) for unit in units}
    return tuple(Frontier(unit, lines[unit], plain, asked.eyes, asked.own) for unit in units)


def _protecting(found: Sequence[PointSummary], unit: str) -> list[PointSummary]:
    return [spot for spot in found if spot.noise is not None and (spot.unit or "user") == unit]


def _lines(
    found: Sequence[PointSummary], titles: Mapping[str, str], own: bool, headless: Container[str]
) -> tuple[TradeoffLine, ...]:
    lines: dict[str, list[PointSummary]] = {}
    for spot in found:
        lines.setdefault(spot.method, []).append(spot)
    drawn = list[TradeoffLine]()
    for name, here in lines.items():
        method = here[0].results[0].point.method
        title = sweep_texts.line(titles.get(name, name), bool(here[0].personals), own, method in headless)
        version = sum(one.method == method for one in drawn)
        drawn.append(TradeoffLine(title, method, tuple(sorted(here, key=lambda spot: spot.noise or 0.0)), version))
    return tuple(drawn)


def absent(found: Frontier) -> list[str]:
    """Why some points have no place by ε, each reason once, with the points it is about."""
    told: dict[str, dict[str, None]] = {}
    for line in found.lines:
        missing = [spot for spot in line.spots if not spot.epsilon.get(found.view)]
        for spot in missing:
            whole = len(missing) == len(line.spots)
            who = line.title if whole else sweep_texts.at(line.title, spot.noise)
            told.setdefault(sweep_texts.absent(spot, found.view), {})[who] = None
    return [f"{', '.join(who)}: {reason}." for reason, who in told.items()]


def several_steps(cells: Sequence[TradeoffCell]) -> bool:
    """Whether anything is tried at more than one server step."""
    tried = {(cell.point.name, cell.point.noise, cell.point.step) for cell in cells}
    return len(tried) > len({(name, noise) for name, noise, _ in tried})


def personal(cells: Sequence[TradeoffCell]) -> bool:
    """Whether any method here has models of the clients' own."""
    return any(cell.result and cell.result.personal is not None for cell in cells)
