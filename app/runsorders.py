"""What a click on the Runs screen asks of the kitchen: open, cancel, go on, pin, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import streamlit as st

from app import classroom, leaks, owners, question, runslist, state, words_runs
from app.runslist import Row
from engine.errors import BadInput, LeakLensError

SAID, DELETING = "runs-said", "runs-deleting"
SAYS_S = 20.0


def said() -> tuple[str, bool]:
    """What came of the last click, for as long as it may interest, and whether it went wrong."""
    text, wrong, at = state.recall(SAID, ("", False, 0.0))
    return (text, wrong) if state.now() - at < SAYS_S else ("", False)


def say(text: str, wrong: bool = False) -> None:
    state.remember(SAID, (text, wrong, state.now()))


def open_in_lab(row: Row) -> NoReturn:
    """To the Lab, with this run on the page and its question in the form."""
    settings_, twin, pins = question.flat(row.listed.spec), "", state.linked("pins")
    if state.kitchen().ready():
        try:
            state.choose(question.settled(settings_))
            twin = _twin(row)
        except LeakLensError:  # a question of another version: the Lab says what it cannot mean
            pass
    state.remember("seeds", 1)
    state.show(run=[row.id], twin=[twin] if twin else [])
    ids = {"run": row.id, "twin": twin, "pins": ",".join(pins)}
    st.switch_page(
        "screens/lab.py", query_params={**question.link(settings_), **{key: ids[key] for key in ids if ids[key]}}
    )


def open_in_leak(row: Row) -> NoReturn:
    """To the Leak screen, with this attack and its control."""
    state.leave("leak", leaks.of_attack(row.listed.spec))


def _twin(row: Row) -> str:
    """The same question without protection, where that was asked here."""
    twin = question.twin_of(question.spec_of(question.flat(row.listed.spec)))
    return twin.id if twin and state.read(twin.id) else ""


def cancel(row: Row) -> None:
    def deed() -> None:
        _own(row, "cancel")
        if classroom.class_mode() and state.others_watching(row.id):
            raise _refused(words_runs.WATCHED, row)
        state.store().cancel(row.id)

    _do(deed)


def go_on(row: Row) -> None:
    """From the checkpoint where it stopped; in class mode it counts among the visitor's runs."""

    def deed() -> None:
        _own(row, "go on with")
        moving = [run for run in state.store().runs() if run.status in runslist.MOVING]  # also those not shown here
        waiting = sum(run.status == "queued" for run in moving)
        mine = sum(not classroom.class_mode() or owners.requested_by(run.options, state.visitor()) for run in moving)
        if refusal := classroom.refused(classroom.caps(), row.listed.spec, mine, waiting):
            raise refusal
        state.store().submit(row.id, row.listed.spec, row.listed.options)
        state.kitchen().supervisor.wake()

    _do(deed)


def pin(run: str) -> None:
    state.show(pins=[*state.linked("pins"), run])


def unpin(run: str) -> None:
    state.show(pins=[one for one in state.linked("pins") if one != run])


# --- deleting: asked, then done --------------------------------------------------------------------------


def ask_to_delete(runs: Sequence[str]) -> None:
    state.remember(DELETING, tuple(runs))


def keep() -> None:
    state.remember(DELETING, ())


def deleting() -> tuple[str, ...]:
    return tuple(state.recall(DELETING, ()))


def delete(runs: Sequence[str]) -> None:
    """All of them as they stand now, up to the first that the store refuses."""
    keep()
    gone: list[Row] = []

    def deed() -> None:
        for row in runslist.read():
            if row.id in runs and row.deletable:
                state.store().delete(row.id)
                unpin(row.id)
                gone.append(row)

    _do(deed)
    if gone and not said()[1]:
        freed = sum(row.listed.bytes for row in gone)
        say(words_runs.DELETED.format(many=words_runs.runs(len(gone)), size=words_runs.size(freed)))


def _own(row: Row, deed: str) -> None:
    if not row.mine:
        raise _refused(words_runs.NOT_YOURS, row, deed)


def _refused(words: tuple[str, str], row: Row, deed: str = "") -> BadInput:
    law, remedy = words
    return BadInput(law.format(run=row.id), remedy.format(deed=deed))


def _do(deed: Callable[[], None]) -> None:
    problem = state.attempt(deed)
    say(problem, wrong=bool(problem))
