"""Every point of the frontier as it stands, and what all of them come to: read from the store, else as they ship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app import state, words_tradeoff
from app.panels.tradeoff import Frontier, Line
from app.tradeoff import Tradeoff
from engine.frontier import Place, Point, Result, Spot, result, spots
from engine.runs import frontiergallery
from engine.runs.frontiergallery import Example

MOVING = ("queued", "running")
STOPPED = ("cancelled", "interrupted")


@dataclass(frozen=True)
class Cell:
    """One point: where its run stands, and what it came to."""

    point: Place
    status: str = ""  # as the store has it, `stored` where it ships, empty where nobody asked it
    result: Result | None = None
    problem: str = ""

    @property
    def moving(self) -> bool:
        return self.status in MOVING


@dataclass(frozen=True)
class View:
    """What one pass shows: the points, before anything is read of what they came to."""

    asked: Tradeoff
    points: tuple[Point, ...]
    titles: Mapping[str, str]
    live: bool = True  # whether the engine is there: the stored example needs none
    stale: bool = False  # whether the question has become one that cannot be asked


def read(points: Sequence[Place]) -> tuple[Cell, ...]:
    """All of them: one look at where they stand, and each result read once."""
    standing = state.standings([one.id for one in points])
    ship = stored()
    found = []
    for point in points:
        status = standing[point.id]
        if not status and point.id in ship:
            found.append(Cell(point, "stored", replace(ship[point.id], point=point)))
        else:
            told = state.reported(point.id) if status in ("finished", "failed") else {}
            found.append(Cell(point, status, result(point, told), _problem(told)))
    return tuple(found)


def _problem(told: Mapping[str, object]) -> str:
    return f"{told['error']}. {told.get('remedy') or ''}.".replace(" .", "") if told.get("error") else ""


def stored() -> dict[str, Result]:
    """The points that ship with LeakLens, by their runs."""
    ship = frontiergallery.frontier()
    return {one.point.id: one for one in ship.results} if ship else {}


def of_example(ship: Example) -> tuple[Cell, ...]:
    """The stored frontier by itself: it needs no engine."""
    return tuple(Cell(one.point, "stored", one) for one in ship.results)


# --- what they come to -------------------------------------------------------------------------------------


def frontiers(cells: Sequence[Cell], titles: Mapping[str, str], asked: Tradeoff) -> tuple[Frontier, ...]:
    """One picture for each unit that is protected, the client first: their noise and their ε mean other things."""
    found = spots([cell.result for cell in cells if cell.result], asked.own)
    plain = _lines([spot for spot in found if spot.noise is None], titles, asked)
    units = sorted({spot.unit or "user" for spot in found if spot.noise is not None}, key=("user", "record").index)
    return tuple(
        Frontier(unit, _lines(_protecting(found, unit), titles, asked), plain, asked.eyes, asked.own) for unit in units
    )


def _protecting(found: Sequence[Spot], unit: str) -> list[Spot]:
    return [spot for spot in found if spot.noise is not None and (spot.unit or "user") == unit]


def _lines(found: Sequence[Spot], titles: Mapping[str, str], asked: Tradeoff) -> tuple[Line, ...]:
    lines: dict[str, list[Spot]] = {}
    for spot in found:
        lines.setdefault(spot.method, []).append(spot)
    drawn = list[Line]()
    for name, here in lines.items():
        method = here[0].results[0].point.method
        title = words_tradeoff.line(titles.get(name, name), bool(here[0].personals), asked.own)
        version = sum(one.method == method for one in drawn)
        drawn.append(Line(title, method, tuple(sorted(here, key=lambda spot: spot.noise or 0.0)), version))
    return tuple(drawn)


def absent(found: Frontier) -> dict[str, list[str]]:
    """Why some points have no place by ε, and whose they are."""
    told: dict[str, list[str]] = {}
    for line in found.lines:
        for spot in line.spots:
            value = spot.epsilon.get(found.view)
            if value:
                continue
            reason = words_tradeoff.ZERO if value == 0 else spot.why.get(found.view) or words_tradeoff.UNPROMISED
            if line.title not in told.setdefault(reason, []):
                told[reason].append(line.title)
    return told


def several_steps(cells: Sequence[Cell]) -> bool:
    """Whether anything is tried at more than one server step."""
    tried = {(cell.point.name, cell.point.noise, cell.point.step) for cell in cells}
    return len(tried) > len({(name, noise) for name, noise, _ in tried})


def personal(cells: Sequence[Cell]) -> bool:
    """Whether any method here has models of the clients' own."""
    return any(cell.result and cell.result.personal is not None for cell in cells)
