"""What a click in the Lab does: run, cancel, resume, pin, and the suggested next steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.batch import submit as batch_submit
from app.session import run_settings, services, session, url
from engine.errors import LeakLensError
from engine.examples.files import RunExample
from engine.jobs.batches import BatchMember
from engine.specs import attack_grid

if TYPE_CHECKING:
    from engine.specs.run import RunSpec


def run() -> None:
    """Request the run in the form with every seed, and its baseline, as one batch."""
    session.remember("trouble", "")
    try:
        spec = run_settings.spec_of(session.settings())
        _refuse(spec)
        specs = run_settings.with_seeds(spec, session.recall("seeds", 1))
        baseline = attack_grid.baseline_of(spec)
        baselines = [baseline] if baseline else []
        members = [BatchMember(each.id, each.canonical()) for each in (specs[0], *baselines, *specs[1:])]
        batch_submit.request(batch_submit.seeds_batch(members), spec.canonical(), len(specs))
    except LeakLensError as error:
        session.remember("trouble", str(error))
        session.rerun()
        return
    url.show(run=[each.id for each in specs], twin=[each.id for each in baselines])
    session.rerun()


def _refuse(spec: RunSpec) -> None:
    """Refuse before queueing what would stop the run later."""
    forecast = services.forecast_of(spec.canonical())
    fatal = next((problem for problem in forecast.problems if problem.fatal), None)
    if fatal:
        raise LeakLensError(fatal.reason, fatal.remedy)


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
    url.unpin(run_id)
    session.rerun()


def cancel() -> None:
    """Cancel the runs on this page for this visitor. The page shows how many others requested, too."""
    try:
        note = batch_submit.cancel((*url.linked("run"), *url.linked("twin")), "runs")
        session.remember("notes", [note] if note else [])
    except LeakLensError as error:
        session.remember("trouble", str(error))
    session.rerun()


def resume() -> None:
    """Resume the interrupted, cancelled and failed runs on this page from their checkpoints."""
    try:
        members = []
        for run_id in (*url.linked("run"), *url.linked("twin")):
            stored = services.read(run_id)
            if stored:
                members.append(BatchMember(run_id, stored[0].spec))
        if members:
            batch_submit.request(batch_submit.seeds_batch(members), members[0].spec)
    except LeakLensError as error:
        session.remember("trouble", str(error))
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
