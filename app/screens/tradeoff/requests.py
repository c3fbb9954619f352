"""What a click on the Trade-off screen does: change the settings, run, cancel and resume.

In class mode a visitor may have a few runs at a time. The page keeps the other points, and submits them as runs end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.batch import submit as batch_submit
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import services, session
from app.texts import states
from engine.errors import LeakLensError
from engine.specs.sweep import SweepPoint

if TYPE_CHECKING:
    from engine.part import Problem

PENDING = "tradeoff-feed"  # session key of the points that the page has still to submit


# --- the settings ------------------------------------------------------------------------------------------


def current() -> TradeoffSettings:
    """Return the settings of this visitor."""
    settings: TradeoffSettings = session.recall("tradeoff") or tradeoff_settings.default()
    return settings


def points() -> tuple[SweepPoint, ...]:
    """Return every point of the current settings, from the last pass if it had the same settings."""
    settings = current()
    view = session.recall("tradeoff-view")
    return view.points if view and view.settings == settings else tradeoff_settings.sweep_points(settings)


def replace_settings(settings: TradeoffSettings, notes: list[str]) -> None:
    """Take over other settings with notes about them. Messages and pending points of the old ones are dropped."""
    session.remember("tradeoff", settings)
    session.remember("tradeoff-notes", notes)
    session.remember("tradeoff-trouble", "")
    session.remember("tradeoff-picked", ("", None))
    session.remember("tradeoff-began", None)
    session.remember(PENDING, ())


def choose(**changes: Any) -> None:
    """Change settings that change the points."""
    replace_settings(tradeoff_settings.settled(replace(current(), **changes)), [])
    session.remember("acted", True)


def choose_run(**changes: Any) -> None:
    """Change the run that is varied. A new part brings its own fields."""
    fields = {name.replace("_", "-"): value for name, value in changes.items()}
    choose(run={**current().run, **fields})


def choose_method_field(method: str, name: str, value: Any) -> None:
    """Change one field of one method."""
    of = {other: dict(fields) for other, fields in current().of.items()}
    of.setdefault(method, {})[name] = value
    choose(of=of)


def change_view(**changes: Any) -> None:
    """Change how the same points are shown. Their runs continue."""
    session.remember("tradeoff", replace(current(), **changes))
    session.remember("acted", True)


def pick(name: str, noise: float | None) -> None:
    """Choose the point whose details are shown."""
    session.remember("tradeoff-picked", (name, noise))


# --- the runs ----------------------------------------------------------------------------------------------


def run(*statuses: str) -> None:
    """Submit every point with one of these statuses. The empty status is that of a point without a run.

    This reads the current settings, not the drawn points: the page may not show the last input yet.
    """
    session.remember("tradeoff-trouble", "")
    session.remember("tradeoff-notes", [])
    session.remember("tradeoff-began", None)
    try:
        all_points = tradeoff_settings.sweep_points(current())
        status_of = {cell.point.id: cell.status for cell in tradeoff_cells.read(all_points)}
        missing = [point for point in all_points if status_of[point.id] in statuses]
        _check(missing)
        damaged = [point.id for point in missing if status_of[point.id] == tradeoff_cells.DAMAGED]
        own_damaged = deletable(damaged)
        for run_id in own_damaged:
            services.store().delete(run_id)
        kept = set(damaged) - own_damaged  # damaged runs of other visitors
        session.remember(PENDING, tuple(point for point in missing if point.id not in kept))
        submit_pending()
    except LeakLensError as error:
        session.remember("tradeoff-trouble", str(error))
        session.remember(PENDING, ())
    session.rerun()


def _check(points: Sequence[SweepPoint]) -> None:
    """Raise each refusal of a run, and each limit of the visitor, before the first point is queued."""
    one_seed = {(point.method, point.noise, point.step): point for point in points}
    for point in one_seed.values():
        _raise_fatal(point.spec.problems())
    one_of_each_method = {point.method: point for point in points}
    for point in one_of_each_method.values():
        _raise_fatal(services.forecast_of(point.spec.canonical(), threads=1).problems)
    # These two limit the runs at a time. The page submits the rest later, so they refuse nothing here.
    caps = replace(class_limits.caps(), runs=None, waiting=None)
    seeds = len({point.seed for point in points})
    for point in points[:1]:
        refusal = class_limits.refused(caps, point.spec.canonical(), 0, 0, 0, seeds)
        if refusal:
            raise refusal


def _raise_fatal(problems: Iterable[Problem]) -> None:
    for problem in problems:
        if problem.fatal:
            raise LeakLensError(problem.reason, problem.remedy)


def submit_pending() -> None:
    """Submit as many pending points as this visitor may have in the queue now. The rest stays on this page."""
    waiting: Sequence[SweepPoint] = session.recall(PENDING, ())
    now = waiting[: _free_places(len(waiting))]
    if now:
        _submit(now)
        session.remember(PENDING, tuple(waiting[len(now) :]))


def _submit(points: Sequence[SweepPoint]) -> None:
    specs = {point.id: point.spec.canonical() for point in points}
    services.store().submit_all(specs, {"device": "cpu", "visitor": session.visitor()})
    services.shared().supervisor.wake()


def _free_places(wanted: int) -> int:
    """Return how many of the wanted runs this visitor may submit now."""
    caps = class_limits.caps()
    if not wanted or (caps.runs is None and caps.waiting is None):
        return wanted
    own_alive, queued = _alive_counts()
    places = wanted
    if caps.runs is not None:
        places = min(places, caps.runs - own_alive)
    if caps.waiting is not None:
        places = min(places, caps.waiting - queued)
    return max(0, places)


def _alive_counts() -> tuple[int, int]:
    """Return the number of this visitor's queued and running runs, and of all queued runs."""
    visitor = session.visitor()
    alive = [row for row in services.store().runs() if row.status in tradeoff_cells.MOVING]
    own_alive = sum(row.options.get("visitor") == visitor and "attack" not in row.spec for row in alive)
    queued = sum(row.status == "queued" for row in alive)
    return own_alive, queued


def deletable(runs: Sequence[str]) -> set[str]:
    """Return the runs that this visitor may delete: in class mode, only those that this visitor requested."""
    if not runs or not class_limits.class_mode():
        return set(runs)
    rows = services.store().runs()
    return {row.id for row in rows if row.id in runs and row.options.get("visitor") == session.visitor()}


def submit_together(points: Sequence[SweepPoint]) -> None:
    """Submit all points now, for a page that submits none later. Too many for the limits are refused."""
    statuses = services.store().statuses([point.id for point in points])
    ready = (*tradeoff_cells.MOVING, "finished")
    missing = [point for point in points if statuses.get(point.id, "") not in ready]
    _check(missing)
    own_alive, queued = _alive_counts()
    for point in missing[:1]:
        caps = class_limits.caps()
        refusal = class_limits.refused(caps, point.spec.canonical(), own_alive, queued, len(missing))
        if refusal:
            raise refusal
    _submit(missing)


def pending() -> set[str]:
    """Return the runs that this page has still to submit."""
    return {point.id for point in session.recall(PENDING, ())}


def cancel(points: Sequence[SweepPoint]) -> None:
    """Cancel the runs that have not ended. Runs of other visitors continue, and results stay."""
    session.remember(PENDING, ())
    try:
        kept = batch_submit.stop([point.id for point in points])
        session.remember("tradeoff-notes", [states.shared(kept, "runs")] if kept else [])
    except LeakLensError as error:
        session.remember("tradeoff-trouble", str(error))
    session.rerun()


def run_live() -> None:
    """Run the points of the stored frontier on this machine."""
    run("", tradeoff_cells.STORED, *tradeoff_cells.STOPPED)


def lab_link() -> dict[str, str]:
    """Return the link to the Lab, which has the other settings of the run."""
    return tradeoff_settings.lab_link(current())
