"""The two sides of Try with what the store has for them: runs, baselines, and the cells of the attacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.batch import attack_cells
from app.batch.view import ShownRun, find
from app.screens.try_it.settings import STATE, TrySettings
from app.session import outcomes, run_settings
from app.texts import product
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.results.estimates import Estimate, estimate
from engine.results.shown_cell import shown_cell
from engine.specs import attack_grid, protections
from engine.specs.attack_grid import NONE, OF_RUN, RequestedAttack

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

SideName = Literal["A", "B"]


@dataclass(frozen=True)
class SideRequest:
    """All that belongs to the settings of one side: its runs, their baseline, and the attacks on both."""

    name: SideName
    run: Mapping[str, Any]  # settings of the run, flat
    specs: tuple[RunSpec, ...]  # one for each seed
    baseline: RunSpec | None  # None for a method that protects nothing
    attacks: tuple[RequestedAttack, ...]
    baseline_attacks: tuple[RequestedAttack, ...]

    @property
    def spec(self) -> RunSpec:
        return self.specs[0]


@dataclass(frozen=True)
class TrySide:
    """One side with the results that belong to its settings. Without results, its tuples of runs are empty."""

    name: SideName
    run: Mapping[str, Any]  # settings of the run, flat
    spec: RunSpec
    runs: tuple[ShownRun, ...]  # one for each seed that the store has
    baselines: tuple[ShownRun, ...]
    cells: tuple[AttackCell, ...]
    baseline_cells: tuple[AttackCell, ...]
    opened: str = ""  # the id of a run that an earlier version made, in place of that of the settings

    @property
    def main(self) -> ShownRun | None:
        """The run with the seed of the settings."""
        return next((run for run in self.runs if run.id == (self.opened or self.spec.id)), None)


def requests_of(settings: TrySettings) -> list[SideRequest]:
    """Side A, and side B if there is one. Raises BadInput if the settings of a side make no run."""
    requests = [side_request("A", settings.run, settings)]
    if settings.other is not None:
        requests.append(side_request("B", settings.other, settings))
    return requests


def side_request(name: SideName, run: Mapping[str, Any], settings: TrySettings) -> SideRequest:
    spec = run_settings.spec_of(run)
    checked = attack_cells.with_refusals(settings.grid(run).requests())
    baseline = attack_grid.baseline_of(spec)
    own_column = OF_RUN if baseline is not None and baseline.id != spec.id else NONE
    return SideRequest(
        name=name,
        run=run,
        specs=run_settings.with_seeds(spec, settings.seeds),
        baseline=baseline if own_column == OF_RUN else None,
        attacks=tuple(request for request in checked if request.column == own_column),
        baseline_attacks=tuple(request for request in checked if request.column != own_column),
    )


def sides() -> list[TrySide]:
    """The sides of this visitor's settings with their results."""
    return [with_results(request) for request in requests_of(STATE.current())]


def with_results(request: SideRequest) -> TrySide:
    """A side with what the store or a stored example has for exactly its settings."""
    baselines = [] if request.baseline is None else [request.baseline.id]
    return TrySide(
        name=request.name,
        run=request.run,
        spec=request.spec,
        runs=_shown(spec.id for spec in request.specs),
        baselines=_shown(baselines),
        cells=tuple(attack_cells.read_cells(request.attacks)),
        baseline_cells=tuple(attack_cells.read_cells(request.baseline_attacks)),
    )


def _shown(ids: Iterable[str]) -> tuple[ShownRun, ...]:
    runs = [find(run) for run in ids]
    return tuple(run for run in runs if run is not None)


def best(cells: Iterable[AttackCell]) -> AttackCell | None:
    """The attack that brought most back of the first picture, or the one that is furthest."""
    known = list(cells)
    shown = shown_cell(known, 0)
    return shown or next((cell for cell in known if cell.moving), None)


def last_guess(cell: AttackCell) -> str:
    """The newest guess of the chosen picture as PNG in base64; empty before the first."""
    guess = attack_summary.guess_of(cell.path[-1], 0) if cell.path else None
    return guess[0] if guess else ""


def estimated(side: TrySide) -> Estimate | None:
    """The accuracy that finished runs near these settings let expect; None without any."""
    canonical = side.spec.canonical()
    return estimate(outcomes.near(canonical), canonical)


def protection_title(run: Mapping[str, Any]) -> str:
    """The name of a protection as its picker shows it."""
    title = protections.described(run).title
    return product.NO_PROTECTION if title == "None" else title  # the picker answers a question, a caption names a thing
