"""What a click on the Trade-off screen does: change the settings, run, cancel and resume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from app.batch import submit as batch_submit
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import services, session
from app.session.screen_state import ScreenState
from app.texts import sweep as sweep_texts
from engine.errors import LeakLensError
from engine.jobs.batches import Batch, BatchKind, BatchMember
from engine.specs.sweep import SweepPoint

if TYPE_CHECKING:
    from engine.part import Problem


# --- the settings ------------------------------------------------------------------------------------------

STATE = ScreenState(TradeoffSettings, about_settings=("tradeoff-picked",))


def points() -> tuple[SweepPoint, ...]:
    """Return every point of the current settings, from the last pass if it had the same settings."""
    settings = STATE.current()
    view = session.recall("tradeoff-view")
    return view.points if view and view.settings == settings else sweep_points.all_points(settings)


def choose_method_field(method: str, name: str, value: Any) -> None:
    """Change one field of one method."""
    of = {other: dict(fields) for other, fields in STATE.current().of.items()}
    of.setdefault(method, {})[name] = value
    STATE.choose(of=of)


def change_view(**changes: Any) -> None:
    """Change how the same points are shown. Their runs continue."""
    session.remember("tradeoff", STATE.current().with_(**changes))
    session.remember("acted", True)


def pick(name: str, noise: float | None) -> None:
    """Choose the point whose details are shown."""
    session.remember("tradeoff-picked", (name, noise))


# --- the runs ----------------------------------------------------------------------------------------------


def run(live: bool = False) -> None:
    """Request every point as one batch. Those that the stored example shows are left out unless `live`.

    This reads the current settings, not the drawn points: the page may not show the last input yet.
    """
    STATE.take_over(STATE.current())
    try:
        points = sweep_points.all_points(STATE.current())
        cells = tradeoff_cells.read(points)
        wanted = [cell for cell in cells if live or cell.status != tradeoff_cells.STORED]
        damaged = [cell.point.id for cell in wanted if cell.status == tradeoff_cells.DAMAGED]
        own_damaged = deletable(damaged)
        for run_id in own_damaged:
            services.store().delete(run_id)
        left_out = set(damaged) - own_damaged  # damaged runs of other visitors
        ids = {cell.point.id for cell in wanted} - left_out
        request([point for point in points if point.id in ids])
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


def request(points: Sequence[SweepPoint]) -> None:
    """Request these points. One that cannot run is a member with its reason; the others go on."""
    problems = _problems(points)
    members = []
    for point in points:
        problem = problems.get(point.id)
        members.append(BatchMember(point.id, point.spec.canonical(), "" if problem is None else str(problem)))
    if members and len(problems) == len(members):
        raise next(iter(problems.values()))
    settings = STATE.current()
    titles = sweep_points.titles()
    methods = dict.fromkeys(titles.get(point.name, point.name) for point in points if point.noise is not None)
    noises = sorted({point.noise for point in points if point.noise is not None})
    rounds = points[0].spec.rounds if points else 0
    title = sweep_texts.batch_title(list(methods), noises, rounds, len(points))
    spec = {"screen": "tradeoff", "link": settings.link()}
    batch = Batch("table" if settings.table else "sweep", title, tuple(members), spec)
    fields = points[0].spec.canonical() if points else {}
    batch_submit.request(batch, fields, len({point.seed for point in points}), sweep_texts.BUSY)


def request_point(points: Sequence[SweepPoint]) -> None:
    """Request the seeds of one point."""
    problems = _problems(points)
    for problem in problems.values():
        raise problem
    members = tuple(BatchMember(point.id, point.spec.canonical()) for point in points)
    batch_submit.request(batch_submit.seeds_batch(members), members[0].spec, len(members))


def _problems(points: Sequence[SweepPoint]) -> dict[str, LeakLensError]:
    """Why points cannot be run, by their ids."""
    problems: dict[str, LeakLensError] = {}
    forecasts = {}
    for point in points:
        fatal = _fatal(point.spec.problems())
        if fatal is None:
            if point.method not in forecasts:
                forecasts[point.method] = _fatal(services.forecast_of(point.spec.canonical(), threads=1).problems)
            fatal = forecasts[point.method]
        if fatal:
            problems[point.id] = fatal
    return problems


def _fatal(problems: Iterable[Problem]) -> LeakLensError | None:
    for problem in problems:
        if problem.fatal:
            return LeakLensError(problem.reason, problem.remedy)
    return None


def deletable(runs: Sequence[str]) -> set[str]:
    """Return the runs that this visitor may delete: in class mode, only those that this visitor requested."""
    return services.requested(runs) if runs else set()


def cancel(points: Sequence[SweepPoint]) -> None:
    """Cancel the runs for this visitor. Those that others requested continue, and results stay."""
    try:
        kind: BatchKind = "table" if STATE.current().table else "sweep"
        note = batch_submit.cancel_batches(kind, [point.id for point in points], "runs")
        STATE.show_notes([note] if note else [])
    except LeakLensError as error:
        STATE.show_trouble(error)
    session.rerun()


def try_link() -> dict[str, str]:
    """Return the link to Try, which has the other settings of the run."""
    return sweep_points.try_link(STATE.current())
