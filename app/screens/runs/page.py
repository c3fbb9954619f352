"""Runs: everything that was asked on this machine, and what may be done with it."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from app.screens.runs import listing as run_listing
from app.screens.runs import requests as run_requests
from app.screens.runs import row as run_row
from app.screens.runs.listing import RunRow
from app.session import services, session
from app.texts import product, states
from app.texts import runs as run_texts
from engine.errors import LeakLensError
from engine.events import encode
from engine.examples.files import examples
from engine.jobs.home import quota

POLL_S, READY_S = 1.0, 0.5
PAGE = 25  # runs
NUMBER = "runs-page"


def page() -> None:
    st.html(f'{run_row.CSS}<h1 class="ll-title">{html.escape(product.RUNS)}</h1>')
    try:
        rows = run_listing.read()
        _tally(rows)
        _said()
        with st.container(key="runs", gap="xsmall"):
            if rows:
                _list(rows)
            else:
                _examples()
        _confirm(rows)
        if not services.shared().ready():
            st.fragment(_titles, run_every=READY_S)()
    except LeakLensError as error:
        _trouble(error)


def _titles() -> None:
    """A first visit is faster than the shelves: what parts are called comes a moment later."""
    if services.shared().ready():
        st.rerun()


def _trouble(error: LeakLensError) -> None:
    _note(str(error), wrong=True)
    st.button(run_texts.AGAIN, key="again")


def _note(text: str, wrong: bool = False) -> None:
    kind, role = ("problem", "alert") if wrong else ("note", "status")
    st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(text)}</p>')


def _tally(rows: Sequence[RunRow]) -> None:
    counts: Counter[str] = Counter(row.listed.status for row in rows)
    text = run_texts.tally(counts, services.store().used(), quota())
    st.html(f'<p class="ll-said">{html.escape(text)}</p>')
    if counts["queued"] and (trouble := services.shared().supervisor.trouble):
        _note(run_texts.STUCK.format(why=trouble), wrong=True)


def _said() -> None:
    text, wrong = run_requests.said()
    if text:
        _note(text, wrong)


# --- the list --------------------------------------------------------------------------------------------


def _list(rows: Sequence[RunRow]) -> None:
    statuses, text = _filter()
    found = run_listing.chosen(rows, statuses, text)
    if not found:
        _note(run_texts.NO_MATCH)
    if moving := [row for row in found if row.moving]:
        run_row.heads(f"{run_texts.MOVING} ({len(moving)})")
        poll = st.fragment(_moving, run_every=POLL_S)
        poll([row.id for row in moving[:PAGE]], [row.id for row in rows if row.moving], run_requests.said())
        if len(moving) > PAGE:
            st.caption(run_texts.MORE_WAIT.format(many=len(moving) - PAGE))
    if ended := [row for row in found if not row.moving]:
        if statuses or text:
            _delete_all([row.id for row in ended if row.deletable])
        run_row.heads(f"{run_texts.ENDED} ({len(ended)})")
        _pages(ended)


def _filter() -> tuple[list[str], str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        statuses = st.pills(
            run_texts.STATE, run_listing.STATUSES, selection_mode="multi", format_func=states.STATES.__getitem__,
            key="runs-states", persist_state="session",
        )  # fmt: skip
        text = st.text_input(
            run_texts.FIND, placeholder=run_texts.FIND_HELP, key="runs-find", width=320, persist_state="session"
        )
    return statuses, text or ""


def _moving(shown: Sequence[str], known: Sequence[str], said: tuple[str, bool]) -> None:
    """PanelInfo again and again; as soon as something began, ended or went wrong, the whole page is."""
    try:
        rows = {row.id: row for row in run_listing.read() if row.moving}
        if list(rows) != list(known) or run_requests.said() != said:
            st.rerun()
        for run in shown:
            run_row.draw(rows[run])
    except LeakLensError as error:
        _note(str(error), wrong=True)


def _pages(ended: Sequence[RunRow]) -> None:
    place, pages = st.container(), -(-len(ended) // PAGE)
    if session.recall(NUMBER, 1) > pages:
        session.remember(NUMBER, pages)
    number = st.pagination(pages, key=NUMBER) if pages > 1 else 1
    with place:
        for row in ended[(number - 1) * PAGE : number * PAGE]:
            run_row.draw(row)


def _examples() -> None:
    _note(run_texts.NOTHING_YET)
    run_row.heads(run_texts.EXAMPLES)
    for one in examples():
        result = run_listing.boiled([encode(event) for event in one.events])
        run_row.example(one.title, [one.lesson, states.STORED.format(made=one.made)], result)


# --- deleting --------------------------------------------------------------------------------------------


def _delete_all(runs: Sequence[str]) -> None:
    if runs:
        label = run_texts.DELETE_ALL.format(many=run_texts.runs(len(runs)))
        st.button(label, key="delete-all", on_click=run_requests.ask_to_delete, args=(runs,))


def _confirm(rows: Sequence[RunRow]) -> None:
    asked = run_requests.deleting()
    if found := [row for row in rows if row.id in asked and row.deletable]:
        title = run_texts.SURE if len(found) == 1 else run_texts.SURE_ALL.format(many=len(found))
        st.dialog(title, on_dismiss=run_requests.keep)(_sure)(found)


def _sure(rows: Sequence[RunRow]) -> None:
    named = "".join(f"<li>{html.escape(f'{row.sentence} (run {row.id})')}</li>" for row in rows[: run_texts.NAMED])
    more = run_texts.AND_MORE.format(many=len(rows) - run_texts.NAMED)
    st.html(f"<ul>{named}{f'<li>{more}</li>' if len(rows) > run_texts.NAMED else ''}</ul>")
    st.markdown(run_texts.FREES.format(size=run_texts.size(sum(row.listed.bytes for row in rows))))
    with st.container(horizontal=True):
        if st.button(run_texts.YES, key="delete-for-good", type="primary"):
            run_requests.delete([row.id for row in rows])
            st.rerun()
        if st.button(run_texts.NO, key="keep"):
            run_requests.keep()
            st.rerun()


page()
