"""What a click on the Trade-off screen asks of the kitchen: run, cancel, go on, another question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.batch import submit as batch_submit
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import services, session
from app.texts import states
from engine.errors import LeakLensError
from engine.specs.sweep import SweepPoint

FEED = "tradeoff-feed"  # points that this page will ask for as soon as the visitor may have more


# --- the question ------------------------------------------------------------------------------------------


def asked() -> TradeoffSettings:
    """The question of this visitor."""
    found: TradeoffSettings = session.recall("tradeoff") or tradeoff_settings.usual()
    return found


def laid_out() -> tuple[SweepPoint, ...]:
    """Every point of the question; not laid out anew where the last pass did it."""
    question, view = asked(), session.recall("tradeoff-view")
    return view.points if view and view.asked == question else tradeoff_settings.laid_out(question)


def arrive(found: TradeoffSettings, told: list[str]) -> None:
    """Another question, with what is to be said of it: what was said and asked of the old one is forgotten."""
    session.remember("tradeoff", found)
    session.remember("tradeoff-told", told)
    session.remember("tradeoff-trouble", "")
    session.remember("tradeoff-picked", ("", None))
    session.remember("tradeoff-began", None)
    session.remember(FEED, ())


def choose(**changes: Any) -> None:
    """The question with another setting."""
    arrive(tradeoff_settings.settled(replace(asked(), **changes)), [])
    session.remember("acted", True)


def choose_run(**changes: Any) -> None:
    """Another run to vary; a part that changes brings its own fields."""
    choose(run={**asked().run, **{name.replace("_", "-"): value for name, value in changes.items()}})


def choose_of(method: str, name: str, value: Any) -> None:
    """Another value of one field of one method."""
    of = {one: dict(own) for one, own in asked().of.items()}
    of.setdefault(method, {})[name] = value
    choose(of=of)


def look(**changes: Any) -> None:
    """Another way to look at the same points: what runs goes on."""
    session.remember("tradeoff", replace(asked(), **changes))
    session.remember("acted", True)


def pick(name: str, noise: float | None) -> None:
    """A point to tell more of."""
    session.remember("tradeoff-picked", (name, noise))


# --- the runs ----------------------------------------------------------------------------------------------


def run(*states: str) -> None:
    """Ask for every point that stands so; empty is what nobody has asked yet.

    The question is the one of this moment: what was typed last may not have been drawn yet.
    """
    session.remember("tradeoff-trouble", "")
    session.remember("tradeoff-told", [])
    session.remember("tradeoff-began", None)
    try:
        points = tradeoff_settings.laid_out(asked())
        standing = {cell.point.id: cell.status for cell in tradeoff_cells.read(points)}
        missing = [point for point in points if standing[point.id] in states]
        _may_be_asked(missing)
        damaged = [point.id for point in missing if standing[point.id] == tradeoff_cells.DAMAGED]
        theirs = set(damaged) - deletable(damaged)
        missing = [point for point in missing if point.id not in theirs]
        for one in deletable(damaged):
            services.store().delete(one)
        session.remember(FEED, tuple(missing))
        feed()
    except LeakLensError as error:
        session.remember("tradeoff-trouble", str(error))
        session.remember(FEED, ())
    session.again()


def _may_be_asked(points: Sequence[SweepPoint]) -> None:
    """Everything that would stop a run is said before the first is queued; a visitor's limits, too."""
    for point in {(point.method, point.noise, point.step): point for point in points}.values():
        if fatal := next((one for one in point.spec.problems() if one.fatal), None):
            raise LeakLensError(fatal.reason, fatal.remedy)
    for point in {point.method: point for point in points}.values():
        told = services.forecast_of(point.spec.canonical(), threads=1)
        if fatal := next((one for one in told.problems if one.fatal), None):
            raise LeakLensError(fatal.reason, fatal.remedy)
    caps = replace(class_limits.caps(), runs=None, waiting=None)  # these two only say how many at a time
    seeds = len({point.seed for point in points})
    for point in points[:1]:
        if refusal := class_limits.refused(caps, point.spec.canonical(), 0, 0, 0, seeds):
            raise refusal


def feed() -> None:
    """Into the queue with as many as this visitor may have there now; the rest waits on this page."""
    waiting: Sequence[SweepPoint] = session.recall(FEED, ())
    now = waiting[: _room(len(waiting))]
    if now:
        _submit(now)
        session.remember(FEED, tuple(waiting[len(now) :]))


def _submit(points: Sequence[SweepPoint]) -> None:
    specs = {point.id: point.spec.canonical() for point in points}
    services.store().submit_all(specs, {"device": "cpu", "visitor": session.visitor()})
    services.shared().supervisor.wake()


def _room(wanted: int) -> int:
    """How many more runs this visitor may ask for at this moment."""
    caps = class_limits.caps()
    if not wanted or (caps.runs is None and caps.waiting is None):
        return wanted
    mine, queued = _waiting()
    free = wanted if caps.runs is None else caps.runs - mine
    return max(0, min(wanted, free, wanted if caps.waiting is None else caps.waiting - queued))


def _waiting() -> tuple[int, int]:
    """Runs of this visitor that wait or run, and runs of anybody that wait."""
    alive = [row for row in services.store().runs() if row.status in tradeoff_cells.MOVING]
    mine = sum(row.options.get("visitor") == session.visitor() and "attack" not in row.spec for row in alive)
    return mine, sum(row.status == "queued" for row in alive)


def deletable(runs: Sequence[str]) -> set[str]:
    """Those that this visitor may delete: in class mode one's own."""
    if not runs or not class_limits.class_mode():
        return set(runs)
    rows = services.store().runs()
    return {row.id for row in rows if row.id in runs and row.options.get("visitor") == session.visitor()}


def ask_at_once(points: Sequence[SweepPoint]) -> None:
    """All of these together, for a page that asks for none of them later; refused where they are too many for now."""
    known = services.store().statuses([point.id for point in points])
    missing = [point for point in points if known.get(point.id, "") not in (*tradeoff_cells.MOVING, "finished")]
    _may_be_asked(missing)
    mine, queued = _waiting()
    for point in missing[:1]:
        if refusal := class_limits.refused(class_limits.caps(), point.spec.canonical(), mine, queued, len(missing)):
            raise refusal
    _submit(missing)


def fed() -> set[str]:
    """The points that this page has still to ask for, by their runs."""
    return {point.id for point in session.recall(FEED, ())}


def cancel(points: Sequence[SweepPoint]) -> None:
    """Stop what has not ended; what is somebody else's goes on, and what is known stays."""
    session.remember(FEED, ())
    try:
        kept = batch_submit.stop([point.id for point in points])
        session.remember("tradeoff-told", [states.shared(kept, "runs")] if kept else [])
    except LeakLensError as error:
        session.remember("tradeoff-trouble", str(error))
    session.again()


def live() -> None:
    """Compute the stored frontier here and now."""
    run("", tradeoff_cells.STORED, *tradeoff_cells.STOPPED)


def lab() -> dict[str, str]:
    """The link to the Lab, where the rest of the question is asked."""
    return tradeoff_settings.to_run(asked())
