"""What a click on the Leak screen asks of the kitchen: attack, cancel, another question, pictures of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app import classroom, leaks, orders, question, state, words, words_leak
from app.leaks import Asked, Leak
from engine.errors import BadInput, LeakLensError
from engine.examples import attacks
from engine.jobs.uploads import Album

AGAIN = ("", "failed", "cancelled", "interrupted", "stored")
OPTIONS = {"device": "cpu"}


# --- the question ------------------------------------------------------------------------------------------


def leak() -> Leak:
    """The question of this visitor."""
    found: Leak = state.recall("leak") or leaks.usual()
    return found


def choose(**changes: Any) -> None:
    """Another question: what was said of the old one is forgotten."""
    state.remember("leak", replace(leak(), **changes))
    state.remember("acted", True)
    state.remember("leak-trouble", "")
    state.remember("leak-told", [])


def choose_run(**changes: Any) -> None:
    """Another run to attack; a part that changes brings its own fields."""
    run = {**leak().run, **{name.replace("_", "-"): value for name, value in changes.items()}}
    choose(run=question.settled(run))


def fault(error: LeakLensError | str) -> None:
    state.remember("leak-trouble", str(error))


# --- the attacks -------------------------------------------------------------------------------------------


def fitted(asked: Sequence[Asked]) -> list[Asked]:
    """The same, with what cannot work turned into the sentence that says why."""
    found = []
    for one in asked:
        problem = one.problem or (state.misfit_of(one.spec) if one.spec else "")
        found.append(replace(one, spec=None, problem=problem) if problem else one)
    return found


def attack(live: bool = False) -> None:
    """Ask every cell that is missing, what answers at once first; `live`: those that ship as examples as well."""
    state.remember("leak-trouble", "")
    state.remember("leak-began", None)
    try:
        asked = [one for one in fitted(leaks.in_order(leaks.cells(leak()))) if one.spec]
        missing = [one for one in asked if status(one.id) in (AGAIN if live else AGAIN[:-1])]
        within_caps([one.id for one in asked], len(missing), words_leak.BUSY)
        submit(missing)
    except LeakLensError as error:
        fault(error)
    state.kitchen().supervisor.wake()
    state.again()


def submit(asked: Sequence[Asked]) -> None:
    """Into the queue, in the order given."""
    for one in asked:
        assert one.spec is not None
        state.store().submit(one.id, one.spec.canonical(), {**OPTIONS, "visitor": state.visitor()})


def status(run: str) -> str:
    """As the store has it, `stored` where it only ships as an example, empty where nobody asked it."""
    if found := state.read(run):
        return found[0].status
    return "stored" if run in stored() else ""


def stored() -> dict[str, Any]:
    """Attacks that ship with LeakLens, by their ids."""
    return {one.id: one for one in attacks.leaks()}


def within_caps(together: Sequence[str], more: int, busy: tuple[str, str]) -> None:
    """In class mode a visitor has one grid or series at a time, of a run that a visitor may ask."""
    caps = classroom.caps()
    if caps == classroom.Caps():
        return
    alive = [row for row in state.store().runs() if row.status in ("queued", "running")]
    mine = [row for row in alive if row.options.get("visitor") == state.visitor() and "attack" in row.spec]
    if more and any(row.id not in together for row in mine):
        raise BadInput(f"class mode: {busy[0]}", busy[1])
    waiting = sum(row.status == "queued" for row in alive)
    run = question.spec_of(leak().run).canonical()
    if refusal := classroom.refused(replace(caps, runs=None), run, 0, waiting, more):
        raise refusal


def cancel() -> None:
    """Stop what this grid still waits for; what others watch goes on."""
    try:
        if kept := stopped(leaks.cells(leak())):
            state.remember("leak-told", [words.shared(kept, "attacks")])
    except LeakLensError as error:
        fault(error)
    state.again()


def stopped(asked: Sequence[Asked]) -> int:
    """Cancel what still waits or runs; how many go on because they are somebody else's."""
    return orders.stop([one.id for one in asked if one.id and status(one.id) in ("queued", "running")])


# --- pictures of one's own ---------------------------------------------------------------------------------


def album() -> Album:
    return Album(state.store().home)


def own() -> list[str]:
    """Pictures that were brought here, the newest first; in class mode only those of this visit."""
    try:
        names = list(album().names())
    except LeakLensError as error:
        fault(error)
        return []
    brought = state.recall("leak-own", [])
    chosen = _name(leak().whose)
    return [name for name in names if name in brought or name == chosen or not classroom.class_mode()][:6]


def bring(file: Any) -> None:
    """A picture from a file or a camera, and the question about it."""
    if file is None:
        return
    try:
        name = album().add(file.getvalue())
    except LeakLensError as error:
        fault(error)
        return
    state.remember("leak-own", [*state.recall("leak-own", []), name])
    choose(whose=f"own-{name}-{label(name)}")


def label(name: str) -> int:
    """What the visitor said that a picture of their own shows."""
    kind, _, rest = leak().whose.partition("-")
    if kind == "own" and rest.startswith(name):
        return int(rest.rpartition("-")[2])
    return int(state.recall("leak-labels", {}).get(name, 0))


def relabel(value: int) -> None:
    name = _name(leak().whose)
    state.remember("leak-labels", {**state.recall("leak-labels", {}), name: value})
    choose(whose=f"own-{name}-{value}")


def delete() -> None:
    """The picture, and every attack that was asked about it: their events hold the picture, too."""
    name = _name(leak().whose)
    rows = [row for row in state.store().runs() if _names(row.spec, name)]
    left = [row.id for row in rows if not _away(row.id, row.status)]
    problem = "" if left else state.attempt(lambda: album().remove(name))
    if problem:
        fault(problem)
        return
    if left:
        state.remember("leak-told", [words_leak.STUCK.format(many=words_leak.count(len(left)))])
        return
    choose(whose="test-0")
    state.remember("leak-told", [words_leak.DELETED.format(many=words_leak.count(len(rows)))])


def _names(spec: Any, name: str) -> bool:
    return any(str(one).startswith(f"own-{name}") for one in spec.get("pictures") or ())


def _away(run: str, status: str) -> bool:
    """Whether an attack is gone: a running one must stop first, which takes a moment."""
    if status in ("queued", "running"):
        state.attempt(lambda: state.store().cancel(run))
    return not state.attempt(lambda: state.store().delete(run))


def _name(whose: str) -> str:
    kind, _, rest = whose.partition("-")
    return rest.rpartition("-")[0] if kind == "own" else ""
