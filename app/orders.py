"""What a click on the page asks of the kitchen: run, cancel, and the next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app import classroom, question, state, words
from engine.errors import LeakLensError
from engine.examples.files import Example
from engine.specs.run import RunSpec


def run() -> None:
    """The question in the form, with every seed, and the same without protection beside it."""
    state.remember("trouble", "")
    try:
        spec = question.spec_of(state.settings())
        _plan(spec)
        specs = question.with_seeds(spec, state.recall("seeds", 1))
        twin = question.twin_of(spec)
        all_of_them = (specs[0], *([twin] if twin else []), *specs[1:])
        _within_caps(spec, len(specs), [one.id for one in all_of_them])
        for one in all_of_them:
            state.store().submit(one.id, one.canonical(), {"device": "cpu", "visitor": state.visitor()})
    except LeakLensError as error:
        state.remember("trouble", str(error))
        state.again()
        return
    state.kitchen().supervisor.wake()
    state.show(run=[one.id for one in specs], twin=[twin.id] if twin else [])
    state.again()


def _plan(spec: RunSpec) -> None:
    """Everything that would stop the run is said before it is queued."""
    told = state.forecast_of(spec.canonical())
    if fatal := next((problem for problem in told.problems if problem.fatal), None):
        raise LeakLensError(fatal.reason, fatal.remedy)


def _within_caps(spec: RunSpec, seeds: int, ids: Sequence[str]) -> None:
    """In class mode a visitor has limits; what somebody asked before costs nothing."""
    caps = classroom.caps()
    if caps == classroom.Caps():
        return
    rows = state.store().runs()
    alive = [row for row in rows if row.status in ("queued", "running")]
    known = {row.id for row in rows if row.status == "finished"} | {row.id for row in alive}
    mine = sum(row.options.get("visitor") == state.visitor() and "attack" not in row.spec for row in alive)
    waiting = sum(row.status == "queued" for row in alive)
    more = sum(one not in known for one in ids)
    if refusal := classroom.refused(caps, spec.canonical(), mine, waiting, more, seeds):
        raise refusal


def change(changes: Mapping[str, Any]) -> None:
    """A next step: pin what is shown, ask the changed question."""
    _pin()
    state.choose(changes)
    run()


def pin() -> None:
    """Keep the run on the page to compare others with it."""
    _pin()
    state.again()


def _pin() -> None:
    state.show(pins=[*state.linked("pins"), *state.linked("run")[:1]])


def unpin(run_id: str) -> None:
    state.show(pins=[one for one in state.linked("pins") if one != run_id])
    state.again()


def cancel() -> None:
    """Stop what this page shows; what is somebody else's goes on."""
    try:
        kept = stop((*state.linked("run"), *state.linked("twin")))
        state.remember("told", [words.shared(kept, "runs")] if kept else [])
    except LeakLensError as error:
        state.remember("trouble", str(error))
    state.again()


def stop(runs: Sequence[str]) -> int:
    """Cancel those that nobody else watches and, in class mode, nobody else asked for; how many go on."""
    known = state.store().statuses(runs)
    alive = [run for run, status in known.items() if status in ("queued", "running")]
    kept = {run for run in alive if state.others_watching(run)}
    if classroom.class_mode():
        rows = state.store().runs()
        kept |= {row.id for row in rows if row.id in alive and row.options.get("visitor") != state.visitor()}
    for run in alive:
        if run not in kept:
            state.attempt(lambda run=run: state.store().cancel(run))
    return len(kept)


def go_on() -> None:
    """What was interrupted or cancelled, from where it stopped."""
    try:
        for one in (*state.linked("run"), *state.linked("twin")):
            found = state.read(one)
            if found and found[0].status in ("interrupted", "cancelled", "failed"):
                state.store().submit(found[0].id, found[0].spec, found[0].options)
    except LeakLensError as error:
        state.remember("trouble", str(error))
    state.kitchen().supervisor.wake()
    state.again()


def open_example(example: Example) -> None:
    """Show a stored example, and its question in the form."""
    state.choose(question.settled(question.flat(example.spec)))
    state.show(run=[example.id], twin=[example.twin] if example.twin else [])
    state.again()


def live(example_spec: Mapping[str, Any]) -> None:
    """Run a stored example here and now."""
    state.choose(question.settled(question.flat(example_spec)))
    run()
