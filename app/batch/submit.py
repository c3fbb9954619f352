"""What a click does to runs: submit, cancel, resume, pin, and the suggested next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.session import limits as class_limits
from app.session import run_settings, services, session, url
from app.texts import states
from engine.errors import LeakLensError
from engine.examples.files import RunExample

if TYPE_CHECKING:
    from engine.specs.run import RunSpec


def run() -> None:
    """Submit the run in the form with every seed, and its baseline."""
    session.remember("trouble", "")
    try:
        spec = run_settings.spec_of(session.settings())
        _refuse(spec)
        specs = run_settings.with_seeds(spec, session.recall("seeds", 1))
        baseline = run_settings.baseline_of(spec)
        baselines = [baseline] if baseline else []
        to_submit = (specs[0], *baselines, *specs[1:])
        _refuse_beyond_limits(spec, len(specs), [each.id for each in to_submit])
        for each in to_submit:
            services.store().submit(each.id, each.canonical(), {"device": "cpu", "visitor": session.visitor()})
    except LeakLensError as error:
        session.remember("trouble", str(error))
        session.rerun()
        return
    services.shared().supervisor.wake()
    url.show(run=[each.id for each in specs], twin=[each.id for each in baselines])
    session.rerun()


def _refuse(spec: RunSpec) -> None:
    """Refuse before queueing what would stop the run later."""
    forecast = services.forecast_of(spec.canonical())
    fatal = next((problem for problem in forecast.problems if problem.fatal), None)
    if fatal:
        raise LeakLensError(fatal.reason, fatal.remedy)


def _refuse_beyond_limits(spec: RunSpec, seeds: int, ids: Sequence[str]) -> None:
    """In class mode, refuse a request beyond the visitor's limits. Runs that are in the store already do not count."""
    caps = class_limits.caps()
    if caps == class_limits.VisitorLimits():
        return
    rows = services.store().runs()
    unfinished = [row for row in rows if row.status in ("queued", "running")]
    stored = {row.id for row in rows if row.status == "finished"} | {row.id for row in unfinished}
    own = sum(row.options.get("visitor") == session.visitor() and "attack" not in row.spec for row in unfinished)
    waiting = sum(row.status == "queued" for row in unfinished)
    more = sum(run_id not in stored for run_id in ids)
    refusal = class_limits.refused(caps, spec.canonical(), own, waiting, more, seeds)
    if refusal:
        raise refusal


def change(changes: Mapping[str, Any]) -> None:
    """A suggested next step: pin the shown run, change settings, and run."""
    _pin()
    session.choose(changes)
    run()


def pin() -> None:
    """Keep the shown run on the page to compare others with it."""
    _pin()
    session.rerun()


def _pin() -> None:
    url.show(pins=[*url.linked("pins"), *url.linked("run")[:1]])


def unpin(run_id: str) -> None:
    url.show(pins=[pinned for pinned in url.linked("pins") if pinned != run_id])
    session.rerun()


def cancel() -> None:
    """Cancel the runs on this page. Runs of other visitors continue, and the page shows how many."""
    try:
        kept = stop((*url.linked("run"), *url.linked("twin")))
        session.remember("notes", [states.shared(kept, "runs")] if kept else [])
    except LeakLensError as error:
        session.remember("trouble", str(error))
    session.rerun()


def stop(runs: Sequence[str]) -> int:
    """Cancel the runs that no other visitor watches or, in class mode, requested. Returns how many continue."""
    statuses = services.store().statuses(runs)
    unfinished = [run for run, status in statuses.items() if status in ("queued", "running")]
    kept = {run for run in unfinished if services.others_watching(run)}
    if class_limits.class_mode():
        rows = services.store().runs()
        kept |= {row.id for row in rows if row.id in unfinished and row.options.get("visitor") != session.visitor()}
    for run in unfinished:
        if run not in kept:
            services.error_of(lambda run=run: services.store().cancel(run))
    return len(kept)


def resume() -> None:
    """Resume the interrupted, cancelled and failed runs on this page from their checkpoints."""
    try:
        for run_id in (*url.linked("run"), *url.linked("twin")):
            stored = services.read(run_id)
            if stored and stored[0].status in ("interrupted", "cancelled", "failed"):
                listed = stored[0]
                services.store().submit(listed.id, listed.spec, listed.options)
    except LeakLensError as error:
        session.remember("trouble", str(error))
    services.shared().supervisor.wake()
    session.rerun()


def open_example(example: RunExample) -> None:
    """Show a stored example, and its settings in the form."""
    session.choose(run_settings.completed(run_settings.flat(example.spec)))
    url.show(run=[example.id], twin=[example.baseline] if example.baseline else [])
    session.rerun()


def run_example(example_spec: Mapping[str, Any]) -> None:
    """Run a stored example on this machine."""
    session.choose(run_settings.completed(run_settings.flat(example_spec)))
    run()
