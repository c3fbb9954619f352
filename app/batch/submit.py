"""What a click on the page asks of the kitchen: run, cancel, and the next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.session import limits as class_limits
from app.session import run_settings, services, session, url
from app.texts import states
from engine.errors import LeakLensError
from engine.examples.files import RunExample
from engine.specs.run import RunSpec


def run() -> None:
    """The question in the form, with every seed, and the same without protection beside it."""
    session.remember("trouble", "")
    try:
        spec = run_settings.spec_of(session.settings())
        _plan(spec)
        specs = run_settings.with_seeds(spec, session.recall("seeds", 1))
        twin = run_settings.baseline_of(spec)
        all_of_them = (specs[0], *([twin] if twin else []), *specs[1:])
        _within_caps(spec, len(specs), [one.id for one in all_of_them])
        for one in all_of_them:
            services.store().submit(one.id, one.canonical(), {"device": "cpu", "visitor": session.visitor()})
    except LeakLensError as error:
        session.remember("trouble", str(error))
        session.again()
        return
    services.shared().supervisor.wake()
    url.show(run=[one.id for one in specs], twin=[twin.id] if twin else [])
    session.again()


def _plan(spec: RunSpec) -> None:
    """Everything that would stop the run is said before it is queued."""
    told = services.forecast_of(spec.canonical())
    if fatal := next((problem for problem in told.problems if problem.fatal), None):
        raise LeakLensError(fatal.reason, fatal.remedy)


def _within_caps(spec: RunSpec, seeds: int, ids: Sequence[str]) -> None:
    """In class mode a visitor has limits; what somebody asked before costs nothing."""
    caps = class_limits.caps()
    if caps == class_limits.VisitorLimits():
        return
    rows = services.store().runs()
    alive = [row for row in rows if row.status in ("queued", "running")]
    known = {row.id for row in rows if row.status == "finished"} | {row.id for row in alive}
    mine = sum(row.options.get("visitor") == session.visitor() and "attack" not in row.spec for row in alive)
    waiting = sum(row.status == "queued" for row in alive)
    more = sum(one not in known for one in ids)
    if refusal := class_limits.refused(caps, spec.canonical(), mine, waiting, more, seeds):
        raise refusal


def change(changes: Mapping[str, Any]) -> None:
    """A next step: pin what is shown, ask the changed question."""
    _pin()
    session.choose(changes)
    run()


def pin() -> None:
    """Keep the run on the page to compare others with it."""
    _pin()
    session.again()


def _pin() -> None:
    url.show(pins=[*url.linked("pins"), *url.linked("run")[:1]])


def unpin(run_id: str) -> None:
    url.show(pins=[one for one in url.linked("pins") if one != run_id])
    session.again()


def cancel() -> None:
    """Stop what this page shows; what is somebody else's goes on."""
    try:
        kept = stop((*url.linked("run"), *url.linked("twin")))
        session.remember("told", [states.shared(kept, "runs")] if kept else [])
    except LeakLensError as error:
        session.remember("trouble", str(error))
    session.again()


def stop(runs: Sequence[str]) -> int:
    """Cancel those that nobody else watches and, in class mode, nobody else asked for; how many go on."""
    known = services.store().statuses(runs)
    alive = [run for run, status in known.items() if status in ("queued", "running")]
    kept = {run for run in alive if services.others_watching(run)}
    if class_limits.class_mode():
        rows = services.store().runs()
        kept |= {row.id for row in rows if row.id in alive and row.options.get("visitor") != session.visitor()}
    for run in alive:
        if run not in kept:
            services.attempt(lambda run=run: services.store().cancel(run))
    return len(kept)


def go_on() -> None:
    """What was interrupted or cancelled, from where it stopped."""
    try:
        for one in (*url.linked("run"), *url.linked("twin")):
            found = services.read(one)
            if found and found[0].status in ("interrupted", "cancelled", "failed"):
                services.store().submit(found[0].id, found[0].spec, found[0].options)
    except LeakLensError as error:
        session.remember("trouble", str(error))
    services.shared().supervisor.wake()
    session.again()


def open_example(example: RunExample) -> None:
    """Show a stored example, and its question in the form."""
    session.choose(run_settings.settled(run_settings.flat(example.spec)))
    url.show(run=[example.id], twin=[example.twin] if example.twin else [])
    session.again()


def live(example_spec: Mapping[str, Any]) -> None:
    """Run a stored example here and now."""
    session.choose(run_settings.settled(run_settings.flat(example_spec)))
    run()
