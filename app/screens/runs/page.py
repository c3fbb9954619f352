"""The page of the Runs screen: a filtered list of runs and attacks, with a button for each action."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from app.screens.runs import group as run_group
from app.screens.runs import listing as run_listing
from app.screens.runs import requests as run_requests
from app.screens.runs import row as run_row
from app.screens.runs.group import RunGroup
from app.screens.runs.listing import RunRow
from app.screens.runs.machine import panel as machine_panel
from app.screens.runs.settings import STATE
from app.session import messages, observer, services, session, url
from app.texts import product, states
from app.texts import runs as run_texts
from app.widgets import fields
from engine.errors import LeakLensError
from engine.events import encode
from engine.examples.files import examples, load_errors
from engine.jobs.home import quota

POLL_S, READY_S = 1.0, 0.5
PAGE = 25  # groups
NUMBER = "runs-page"


def runs() -> None:
    """Draws the page with the list of runs."""
    _tabs("runs")
    STATE.open_link()
    try:
        rows = run_listing.read()
        _tally(rows)
        _last_message()
        with st.container(key="runs", gap="xsmall"):
            if rows:
                _list(rows)
            else:
                _examples()
        _confirm(rows)
        if not services.shared().ready():
            st.fragment(_redraw_with_titles, run_every=READY_S)()
    except LeakLensError as error:
        messages.show("problem", str(error))
        st.button(run_texts.AGAIN, key="again")
    STATE.write_link()


def machine() -> None:
    """Draws the page with the state of the machine."""
    _tabs("machine")
    machine_panel.panel()


def _tabs(shown: str) -> None:
    """Draws the title, and the tabs of the page. Each has its own address."""
    st.html(f'{run_row.CSS}<h1 class="ll-title">{html.escape(product.RUNS)}</h1>')
    titles = {"runs": product.RUNS_TAB, "machine": product.MACHINE_TAB}
    st.segmented_control(
        product.RUNS, list(titles), format_func=titles.__getitem__, required=True, label_visibility="collapsed",
        **session.bind("runs-tab", shown, lambda name: session.remember("runs-opened", name)),
    )  # fmt: skip
    opened = session.recall("runs-opened") or shown
    session.remember("runs-opened", None)
    if opened != shown:
        url.open_screen(opened, {})


def _redraw_with_titles() -> None:
    """Redraws the page when the shelves are loaded. A first visit is faster than that and shows names, not titles."""
    if services.shared().ready():
        st.rerun()


def _tally(rows: Sequence[RunRow]) -> None:
    counts: Counter[str] = Counter(row.listed.status for row in rows)
    text = run_texts.store_summary(counts, services.store().used(), quota())
    st.html(f'<p class="ll-lead">{html.escape(text)}</p>')
    trouble = services.shared().supervisor.trouble
    if counts["queued"] and trouble:
        messages.show("problem", run_texts.STUCK.format(why=trouble))


def _last_message() -> None:
    text, wrong = run_requests.last_message()
    if text:
        messages.show("problem" if wrong else "note", text)


# --- the list ----------------------------------------------------------------------------------------------


def _list(rows: Sequence[RunRow]) -> None:
    statuses, text, sort = _filter()
    matches = run_listing.chosen(rows, statuses, text)
    if not matches:
        messages.show("note", run_texts.NO_MATCH)
    grouped = run_group.in_order(run_group.groups(matches), sort)
    moving = [group for group in grouped if group.moving]
    if moving:
        together = [row.moving for group in moving for row in group.rows]
        run_row.heads(run_texts.moving_title(sum(together), len(together)))
        poll = st.fragment(_moving, run_every=POLL_S)
        shown = [group.id for group in moving[:PAGE]]
        poll(shown, sort, [row.id for row in rows if row.moving], run_requests.last_message())
        if len(moving) > PAGE:
            st.caption(run_texts.MORE_WAIT.format(many=len(moving) - PAGE))
    ended = [group for group in grouped if not group.moving]
    if ended:
        if statuses or text:
            _delete_all([row.id for group in ended for row in group.rows if row.deletable])
        run_row.heads(f"{run_texts.ENDED} ({run_texts.runs(sum(len(group.rows) for group in ended))})")
        _pages(ended)


def _filter() -> tuple[list[str], str, str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.pills(
            run_texts.STATE, run_listing.STATUSES, selection_mode="multi", format_func=states.STATES.__getitem__,
            **STATE.bind("states"),
        )  # fmt: skip
        fields.screen_field(STATE, "find", placeholder=run_texts.FIND_HELP, width=320)
        fields.screen_field(STATE, "sort", run_texts.SORTS, width=150)
    chosen = STATE.current()
    return list(chosen.states), chosen.find, chosen.sort


@messages.guarded
def _moving(shown: Sequence[str], sort: str, unfinished: Sequence[str], message: tuple[str, bool]) -> None:
    """Redraws the unfinished groups. When a run starts or ends, or a new message comes, it redraws the whole page."""
    rows = run_listing.read()
    moving = [row.id for row in rows if row.moving]
    if moving != list(unfinished) or run_requests.last_message() != message:
        st.rerun()
    grouped = {group.id: group for group in run_group.in_order(run_group.groups(rows), sort)}
    for name in shown:
        if name in grouped:
            run_row.draw_group(grouped[name])


def _pages(ended: Sequence[RunGroup]) -> None:
    container = st.container()  # above the page numbers
    pages = -(-len(ended) // PAGE)
    if session.recall(NUMBER, 1) > pages:
        session.remember(NUMBER, pages)
    number = st.pagination(pages, key=NUMBER) if pages > 1 else 1
    with container:
        for group in ended[(number - 1) * PAGE : number * PAGE]:
            run_row.draw_group(group)


def _examples() -> None:
    messages.show("note", run_texts.NOTHING_YET)
    run_row.heads(run_texts.EXAMPLES, buttons=False)
    for error in load_errors():
        messages.show("problem", str(error))
    for example in examples():
        result = run_listing.fold([encode(event) for event in example.events], observer.current())
        run_row.example(example.title, [example.lesson, states.STORED.format(made=example.made)], result)


# --- deleting ----------------------------------------------------------------------------------------------


def _delete_all(runs: Sequence[str]) -> None:
    if runs:
        label = run_texts.DELETE_ALL.format(many=run_texts.runs(len(runs)))
        st.button(label, key="delete-all", on_click=run_requests.request_delete, args=(runs,))


def _confirm(rows: Sequence[RunRow]) -> None:
    """Opens the dialog if the visitor clicked Delete."""
    requested = run_requests.deleting()
    deletable = [row for row in rows if row.id in requested and row.deletable]
    if deletable:
        title = run_texts.SURE if len(deletable) == 1 else run_texts.SURE_ALL.format(many=len(deletable))
        st.dialog(title, on_dismiss=run_requests.keep)(_confirm_dialog)(deletable)


def _confirm_dialog(rows: Sequence[RunRow]) -> None:
    items = [html.escape(f"{row.sentence} (run {row.id})") for row in rows[: run_texts.NAMED]]
    if len(rows) > run_texts.NAMED:
        items.append(run_texts.AND_MORE.format(many=len(rows) - run_texts.NAMED))
    st.html("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
    size = sum(row.listed.bytes for row in rows)
    st.markdown(run_texts.FREES.format(size=run_texts.size(size)))
    with st.container(horizontal=True):
        if st.button(run_texts.YES, key="delete-for-good", type="primary"):
            run_requests.delete([row.id for row in rows])
            st.rerun()
        if st.button(run_texts.NO, key="keep"):
            run_requests.keep()
            st.rerun()
