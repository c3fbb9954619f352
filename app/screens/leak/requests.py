"""What a click on the Leak screen asks of the kitchen: attack, cancel, another question, pictures of one's own."""

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

AGAIN = ("", "failed", "cancelled", "interrupted", "stored")
OPTIONS = {"device": "cpu"}


# --- the question ------------------------------------------------------------------------------------------


def leak() -> LeakSettings:
    """The question of this visitor."""
    found: LeakSettings = session.recall("leak") or leak_settings.usual()
    return found


def choose(**changes: Any) -> None:
    """Another question: what was said of the old one is forgotten."""
    session.remember("leak", replace(leak(), **changes))
    session.remember("acted", True)
    session.remember("leak-trouble", "")
    session.remember("leak-told", [])


def choose_run(**changes: Any) -> None:
    """Another run to attack; a part that changes brings its own fields."""
    run = {**leak().run, **{name.replace("_", "-"): value for name, value in changes.items()}}
    choose(run=run_settings.settled(run))


def fault(error: LeakLensError | str) -> None:
    session.remember("leak-trouble", str(error))


# --- the attacks -------------------------------------------------------------------------------------------


def fitted(asked: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """The same, with what cannot work turned into the sentence that says why."""
    found = []
    for one in asked:
        problem = one.problem or (services.misfit_of(one.spec) if one.spec else "")
        found.append(replace(one, spec=None, problem=problem) if problem else one)
    return found


def attack(live: bool = False) -> None:
    """Ask every cell that is missing, what answers at once first; `live`: those that ship as examples as well."""
    session.remember("leak-trouble", "")
    session.remember("leak-began", None)
    try:
        asked = [one for one in fitted(leak_settings.in_order(leak_settings.cells(leak()))) if one.spec]
        missing = [one for one in asked if status(one.id) in (AGAIN if live else AGAIN[:-1])]
        within_caps([one.id for one in asked], len(missing), attack_texts.BUSY)
        submit(missing)
    except LeakLensError as error:
        fault(error)
    services.shared().supervisor.wake()
    session.again()


def submit(asked: Sequence[RequestedAttack]) -> None:
    """Into the queue, in the order given."""
    for one in asked:
        assert one.spec is not None
        services.store().submit(one.id, one.spec.canonical(), {**OPTIONS, "visitor": session.visitor()})


def status(run: str) -> str:
    """As the store has it, `stored` where it only ships as an example, empty where nobody asked it."""
    if found := services.read(run):
        return found[0].status
    return "stored" if run in stored() else ""


def stored() -> dict[str, Any]:
    """Attacks that ship with LeakLens, by their ids."""
    return {one.id: one for one in attacks.leaks()}


def within_caps(together: Sequence[str], more: int, busy: tuple[str, str]) -> None:
    """In class mode a visitor has one grid or series at a time, of a run that a visitor may ask."""
    caps = class_limits.caps()
    if caps == class_limits.VisitorLimits():
        return
    alive = [row for row in services.store().runs() if row.status in ("queued", "running")]
    mine = [row for row in alive if row.options.get("visitor") == session.visitor() and "attack" in row.spec]
    if more and any(row.id not in together for row in mine):
        raise BadInput(f"class mode: {busy[0]}", busy[1])
    waiting = sum(row.status == "queued" for row in alive)
    run = run_settings.spec_of(leak().run).canonical()
    if refusal := class_limits.refused(replace(caps, runs=None), run, 0, waiting, more):
        raise refusal


def cancel() -> None:
    """Stop what this grid still waits for; what others watch goes on."""
    try:
        if kept := stopped(leak_settings.cells(leak())):
            session.remember("leak-told", [states.shared(kept, "attacks")])
    except LeakLensError as error:
        fault(error)
    session.again()


def stopped(asked: Sequence[RequestedAttack]) -> int:
    """Cancel what still waits or runs; how many go on because they are somebody else's."""
    return batch_submit.stop([one.id for one in asked if one.id and status(one.id) in ("queued", "running")])


# --- pictures of one's own ---------------------------------------------------------------------------------


def album() -> UploadedPictures:
    return UploadedPictures(services.store().home)


def own() -> list[str]:
    """Pictures that were brought here, the newest first; in class mode only those of this visit."""
    try:
        names = list(album().names())
    except LeakLensError as error:
        fault(error)
        return []
    brought = session.recall("leak-own", [])
    chosen = _name(leak().whose)
    return [name for name in names if name in brought or name == chosen or not class_limits.class_mode()][:6]


def bring(file: Any) -> None:
    """A picture from a file or a camera, and the question about it."""
    if file is None:
        return
    try:
        name = album().add(file.getvalue())
    except LeakLensError as error:
        fault(error)
        return
    session.remember("leak-own", [*session.recall("leak-own", []), name])
    choose(whose=f"own-{name}-{label(name)}")


def label(name: str) -> int:
    """What the visitor said that a picture of their own shows."""
    kind, _, rest = leak().whose.partition("-")
    if kind == "own" and rest.startswith(name):
        return int(rest.rpartition("-")[2])
    return int(session.recall("leak-labels", {}).get(name, 0))


def relabel(value: int) -> None:
    name = _name(leak().whose)
    session.remember("leak-labels", {**session.recall("leak-labels", {}), name: value})
    choose(whose=f"own-{name}-{value}")


def delete() -> None:
    """The picture, and every attack that was asked about it: their events hold the picture, too."""
    name = _name(leak().whose)
    rows = [row for row in services.store().runs() if _names(row.spec, name)]
    left = [row.id for row in rows if not _away(row.id, row.status)]
    problem = "" if left else services.attempt(lambda: album().remove(name))
    if problem:
        fault(problem)
        return
    if left:
        session.remember("leak-told", [attack_texts.STUCK.format(many=attack_texts.count(len(left)))])
        return
    choose(whose="test-0")
    session.remember("leak-told", [attack_texts.DELETED.format(many=attack_texts.count(len(rows)))])


def _names(spec: Any, name: str) -> bool:
    return any(str(one).startswith(f"own-{name}") for one in spec.get("pictures") or ())


def _away(run: str, status: str) -> bool:
    """Whether an attack is gone: a running one must stop first, which takes a moment."""
    if status in ("queued", "running"):
        services.attempt(lambda: services.store().cancel(run))
    return not services.attempt(lambda: services.store().delete(run))


def _name(whose: str) -> str:
    kind, _, rest = whose.partition("-")
    return rest.rpartition("-")[0] if kind == "own" else ""
