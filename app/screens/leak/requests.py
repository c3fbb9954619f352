"""What a click on the Leak screen does: change the settings, attack, cancel, and upload or delete a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.batch import submit as batch_submit
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import attacks as attack_texts
from app.texts import states
from engine.errors import BadInput, LeakLensError
from engine.examples import attacks
from engine.specs.attack_grid import RequestedAttack

ALIVE = ("queued", "running")
MISSING = ("", "failed", "cancelled", "interrupted")  # statuses of attacks that "Attack" submits
MISSING_LIVE = (*MISSING, "stored")  # "Run live" submits the stored examples, too
OPTIONS = {"device": "cpu"}


# --- the settings ------------------------------------------------------------------------------------------


def current() -> LeakSettings:
    """Return the settings of this visitor.

    Privacy: the owner of an uploaded picture is checked at each use. Without that, settings that hold another visitor's
    picture would show it.
    """
    leak: LeakSettings = session.recall("leak") or leak_settings.default()
    name = _upload_name(leak.whose)
    if name and not services.may_see_picture(name):
        return replace(leak, whose=leak_settings.LeakSettings().whose)
    return leak


def choose(**changes: Any) -> None:
    """Change settings, and forget the messages about the old ones."""
    session.remember("leak", replace(current(), **changes))
    session.remember("acted", True)
    session.remember("leak-trouble", "")
    session.remember("leak-notes", [])


def choose_run(**changes: Any) -> None:
    """Change the run under attack. A new part brings its own fields."""
    settings = {name.replace("_", "-"): value for name, value in changes.items()}
    choose(run=run_settings.completed({**current().run, **settings}))


def show_error(error: LeakLensError | str) -> None:
    session.remember("leak-trouble", str(error))


# --- the attacks -------------------------------------------------------------------------------------------


def with_refusals(requests: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """Return the same requests. One that cannot work has the reason in place of its spec."""
    checked = []
    for request in requests:
        problem = request.problem
        if not problem and request.spec:
            problem = services.attack_problem(request.spec)
        checked.append(replace(request, spec=None, problem=problem) if problem else request)
    return checked


def attack(live: bool = False) -> None:
    """Submit every missing cell, the cheapest first. `live` runs the stored examples as well."""
    session.remember("leak-trouble", "")
    session.remember("leak-began", None)
    wanted = MISSING_LIVE if live else MISSING
    try:
        ordered = leak_settings.in_order(leak_settings.cells(current()))
        requests = [request for request in with_refusals(ordered) if request.spec]
        missing = [request for request in requests if status(request.id) in wanted]
        check_limits([request.id for request in requests], len(missing), attack_texts.BUSY)
        submit(missing)
    except LeakLensError as error:
        show_error(error)
    services.shared().supervisor.wake()
    session.rerun()


def submit(requests: Sequence[RequestedAttack]) -> None:
    """Add the attacks to the queue, in the given order."""
    for request in requests:
        assert request.spec is not None
        options = {**OPTIONS, "visitor": session.visitor()}
        services.store().submit(request.id, request.spec.canonical(), options)


def status(run: str) -> str:
    """Return the status in the store, `stored` for an attack that is only an example, or an empty string."""
    record = services.read(run)
    if record:
        return record[0].status
    return "stored" if run in stored() else ""


def stored() -> dict[str, Any]:
    """Return the attacks that ship with LeakLens, by id."""
    return {example.id: example for example in attacks.attack_examples()}


def check_limits(together: Sequence[str], more: int, busy: tuple[str, str]) -> None:
    """In class mode, refuse a second grid or series of the same visitor, and a run beyond the limits.

    `together` holds the ids of this grid, `more` is the number of attacks to submit.
    """
    caps = class_limits.caps()
    if caps == class_limits.VisitorLimits():
        return
    alive = [row for row in services.store().runs() if row.status in ALIVE]
    visitor = session.visitor()
    own_attacks = [row for row in alive if row.options.get("visitor") == visitor and "attack" in row.spec]
    if more and any(row.id not in together for row in own_attacks):
        raise BadInput(f"class mode: {busy[0]}", busy[1])
    waiting = sum(row.status == "queued" for row in alive)
    run = run_settings.spec_of(current().run).canonical()
    refusal = class_limits.refused(replace(caps, runs=None), run, 0, waiting, more)
    if refusal:
        raise refusal


def cancel() -> None:
    """Cancel the attacks of this grid that have not ended. Attacks that other visitors watch continue."""
    try:
        kept = stop(leak_settings.cells(current()))
        if kept:
            session.remember("leak-notes", [states.shared(kept, "attacks")])
    except LeakLensError as error:
        show_error(error)
    session.rerun()


def stop(requests: Sequence[RequestedAttack]) -> int:
    """Cancel queued and running attacks. Return how many continue because another visitor uses them."""
    alive = [request.id for request in requests if request.id and status(request.id) in ALIVE]
    return batch_submit.stop(alive)


# --- uploaded pictures -------------------------------------------------------------------------------------


def _upload_name(whose: str) -> str:
    """Return the name of an uploaded picture, or an empty string for a picture of the data set."""
    kind, _, rest = whose.partition("-")
    return rest.rpartition("-")[0] if kind == "own" else ""
