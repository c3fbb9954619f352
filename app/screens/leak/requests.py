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
from engine.jobs.uploads import UploadedPictures
from engine.specs.attack_grid import RequestedAttack

ALIVE = ("queued", "running")
MISSING = ("", "failed", "cancelled", "interrupted")  # statuses of attacks that "Attack" submits
MISSING_LIVE = (*MISSING, "stored")  # "Run live" submits the stored examples, too
OPTIONS = {"device": "cpu"}
MOST_OWN = 6  # uploaded pictures that the form offers


# --- the settings ------------------------------------------------------------------------------------------


def current() -> LeakSettings:
    """Return the settings of this visitor."""
    leak: LeakSettings = session.recall("leak") or leak_settings.default()
    return leak


def choose(**changes: Any) -> None:
    """Change settings, and forget the messages about the old ones."""
    session.remember("leak", replace(current(), **changes))
    session.remember("acted", True)
    session.remember("leak-trouble", "")
    session.remember("leak-told", [])


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
            session.remember("leak-told", [states.shared(kept, "attacks")])
    except LeakLensError as error:
        show_error(error)
    session.rerun()


def stop(requests: Sequence[RequestedAttack]) -> int:
    """Cancel queued and running attacks. Return how many continue because another visitor uses them."""
    alive = [request.id for request in requests if request.id and status(request.id) in ALIVE]
    return batch_submit.stop(alive)


# --- uploaded pictures -------------------------------------------------------------------------------------


def uploads() -> UploadedPictures:
    return UploadedPictures(services.store().home)


def own() -> list[str]:
    """Return the names of uploaded pictures, the newest first.

    Privacy: in class mode this lists the pictures of this visit only. Without that filter, each visitor would see
    the pictures that others uploaded.
    """
    try:
        names = list(uploads().names())
    except LeakLensError as error:
        show_error(error)
        return []
    visible = [*session.recall("leak-own", []), _upload_name(current().whose)]
    if class_limits.class_mode():
        names = [name for name in names if name in visible]
    return names[:MOST_OWN]


def add_picture(file: Any) -> None:
    """Store a picture from a file or a camera, and choose it."""
    if file is None:
        return
    try:
        name = uploads().add(file.getvalue())
    except LeakLensError as error:
        show_error(error)
        return
    session.remember("leak-own", [*session.recall("leak-own", []), name])
    choose(whose=f"own-{name}-{label(name)}")


def label(name: str) -> int:
    """Return the class that the visitor chose for an uploaded picture."""
    kind, _, rest = current().whose.partition("-")
    if kind == "own" and rest.startswith(name):
        return int(rest.rpartition("-")[2])
    return int(session.recall("leak-labels", {}).get(name, 0))


def relabel(value: int) -> None:
    name = _upload_name(current().whose)
    session.remember("leak-labels", {**session.recall("leak-labels", {}), name: value})
    choose(whose=f"own-{name}-{value}")


def delete() -> None:
    """Delete the uploaded picture and every attack on it.

    Privacy: the events of an attack hold the picture, too. If an attack stayed, the picture would stay.
    """
    name = _upload_name(current().whose)
    rows = [row for row in services.store().runs() if _attacks_upload(row.spec, name)]
    remaining = [row.id for row in rows if not _deleted(row.id, row.status)]
    if remaining:
        count = attack_texts.count(len(remaining))
        session.remember("leak-told", [attack_texts.STUCK.format(many=count)])
        return
    problem = services.error_of(lambda: uploads().remove(name))
    if problem:
        show_error(problem)
        return
    choose(whose="test-0")
    session.remember("leak-told", [attack_texts.DELETED.format(many=attack_texts.count(len(rows)))])


def _attacks_upload(spec: Any, name: str) -> bool:
    pictures = spec.get("pictures") or ()
    return any(str(picture).startswith(f"own-{name}") for picture in pictures)


def _deleted(run: str, status: str) -> bool:
    """Delete an attack and return whether it is gone. A running attack must stop first, which takes a moment."""
    if status in ALIVE:
        services.error_of(lambda: services.store().cancel(run))
    return not services.error_of(lambda: services.store().delete(run))


def _upload_name(whose: str) -> str:
    """Return the name of an uploaded picture, or an empty string for a picture of the data set."""
    kind, _, rest = whose.partition("-")
    return rest.rpartition("-")[0] if kind == "own" else ""
