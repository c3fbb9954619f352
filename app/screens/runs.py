"""Runs: everything that was asked on this machine, and what may be done with it."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from app import runslist, runsorders, runsrow, state, words, words_runs
from app.runslist import Row
from engine.errors import LeakLensError
from engine.events import encode
from engine.examples.files import examples
from engine.jobs.home import quota

POLL_S, READY_S = 1.0, 0.5
PAGE = 25  # runs
NUMBER = "runs-page"


def page() -> None:
    st.html(f'{runsrow.CSS}<h1 class="ll-title">{html.escape(words.RUNS)}</h1>')
    try:
        rows = runslist.read()
        _tally(rows)
        _said()
        with st.container(key="runs", gap="xsmall"):
            if rows:
                _list(rows)
            else:
                _examples()
        _confirm(rows)
        if not state.kitchen().ready():
            st.fragment(_titles, run_every=READY_S)()
    except LeakLensError as error:
        _trouble(error)


def _titles() -> None:
    """A first visit is faster than the shelves: what parts are called comes a moment later."""
    if state.kitchen().ready():
        st.rerun()


def _trouble(error: LeakLensError) -> None:
    _note(str(error), wrong=True)
    st.button(words_runs.AGAIN, key="again")


def _note(text: str, wrong: bool = False) -> None:
    kind, role = ("problem", "alert") if wrong else ("note", "status")
    st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(text)}</p>')


def _tally(rows: Sequence[Row]) -> None:
    counts: Counter[str] = Counter(row.listed.status for row in rows)
    text = words_runs.tally(counts, state.store().used(), quota())
    st.html(f'<p class="ll-said">{html.escape(text)}</p>')
    if counts["queued"] and (trouble := state.kitchen().supervisor.trouble):
        _note(words_runs.STUCK.format(why=trouble), wrong=True)


def _said() -> None:
    text, wrong = runsorders.said()
    if text:
        _note(text, wrong)


# --- the list --------------------------------------------------------------------------------------------


def _list(rows: Sequence[Row]) -> None:
    statuses, text = _filter()
    found = runslist.chosen(rows, statuses, text)
    if not found:
        _note(words_runs.NO_MATCH)
    if moving := [row for row in found if row.moving]:
        runsrow.heads(f"{words_runs.MOVING} ({len(moving)})")
        poll = st.fragment(_moving, run_every=POLL_S)
        poll([row.id for row in moving[:PAGE]], [row.id for row in rows if row.moving], runsorders.said())
        if len(moving) > PAGE:
            st.caption(words_runs.MORE_WAIT.format(many=len(moving) - PAGE))
    if ended := [row for row in found if not row.moving]:
        if statuses or text:
            _delete_all([row.id for row in ended if row.deletable])
        runsrow.heads(f"{words_runs.ENDED} ({len(ended)})")
        _pages(ended)


def _filter() -> tuple[list[str], str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        statuses = st.pills(
            words_runs.STATE, runslist.STATUSES, selection_mode="multi", format_func=words.STATES.__getitem__,
            key="runs-states", persist_state="session",
        )  # fmt: skip
        text = st.text_input(
            words_runs.FIND, placeholder=words_runs.FIND_HELP, key="runs-find", width=320, persist_state="session"
        )
    return statuses, text or ""


def _moving(shown: Sequence[str], known: Sequence[str], said: tuple[str, bool]) -> None:
    """Drawn again and again; as soon as something began, ended or went wrong, the whole page is."""
    try:
        rows = {row.id: row for row in runslist.read() if row.moving}
        if list(rows) != list(known) or runsorders.said() != said:
            st.rerun()
        for run in shown:
            runsrow.draw(rows[run])
    except LeakLensError as error:
        _note(str(error), wrong=True)


def _pages(ended: Sequence[Row]) -> None:
    place, pages = st.container(), -(-len(ended) // PAGE)
    if state.recall(NUMBER, 1) > pages:
        state.remember(NUMBER, pages)
    number = st.pagination(pages, key=NUMBER) if pages > 1 else 1
    with place:
        for row in ended[(number - 1) * PAGE : number * PAGE]:
            runsrow.draw(row)


def _examples() -> None:
    _note(words_runs.NOTHING_YET)
    runsrow.heads(words_runs.EXAMPLES)
    for one in examples():
        result = runslist.boiled([encode(event) for event in one.events])
        runsrow.example(one.title, [one.lesson, words.STORED.format(made=one.made)], result)


# --- deleting --------------------------------------------------------------------------------------------


def _delete_all(runs: Sequence[str]) -> None:
    if runs:
        label = words_runs.DELETE_ALL.format(many=words_runs.runs(len(runs)))
        st.button(label, key="delete-all", on_click=runsorders.ask_to_delete, args=(runs,))


def _confirm(rows: Sequence[Row]) -> None:
    asked = runsorders.deleting()
    if found := [row for row in rows if row.id in asked and row.deletable]:
        title = words_runs.SURE if len(found) == 1 else words_runs.SURE_ALL.format(many=len(found))
        st.dialog(title, on_dismiss=runsorders.keep)(_sure)(found)


def _sure(rows: Sequence[Row]) -> None:
    named = "".join(f"<li>{html.escape(f'{row.sentence} (run {row.id})')}</li>" for row in rows[: words_runs.NAMED])
    more = words_runs.AND_MORE.format(many=len(rows) - words_runs.NAMED)
    st.html(f"<ul>{named}{f'<li>{more}</li>' if len(rows) > words_runs.NAMED else ''}</ul>")
    st.markdown(words_runs.FREES.format(size=words_runs.size(sum(row.listed.bytes for row in rows))))
    with st.container(horizontal=True):
        if st.button(words_runs.YES, key="delete-for-good", type="primary"):
            runsorders.delete([row.id for row in rows])
            st.rerun()
        if st.button(words_runs.NO, key="keep"):
            runsorders.keep()
            st.rerun()


page()
