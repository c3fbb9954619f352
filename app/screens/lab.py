"""The Lab: ask on the left, watch on the right."""

from __future__ import annotations

import html

import streamlit as st

from app import ask, charts, classroom, live, notes, orders, question, state, words
from engine.errors import LeakLensError


def page() -> None:
    try:
        kitchen = state.kitchen()
    except LeakLensError as error:  # the home cannot be used: nothing can be asked
        ask.closed(error)
        return
    ready = kitchen.ready()
    usable = ready and not kitchen.trouble
    _top(usable)
    left, right = st.columns([1, 2], gap="large")
    _arrive(usable)
    with left:
        ask.form() if usable else ask.broken() if ready else ask.getting_ready()
    with right:
        notes.guarded(live.panel)()
    charts.listen_for_saves()
    if usable:
        state.write_link()


def _top(usable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(f'<h1 class="ll-title">{html.escape(words.PROMISE)}</h1>', width="stretch")
        if usable:
            with st.popover("Examples"):
                for one in state.gallery():
                    st.button(
                        one.title, key=f"example-{one.name}", help=one.lesson, on_click=orders.open_example, args=(one,)
                    )
    if classroom.class_mode():
        st.caption(words.SHARED.format(limits=classroom.told(classroom.caps())))


def _arrive(usable: bool) -> None:
    """The question and the runs that the link names; without a link, the first example."""
    usual = state.first_example()
    if usable:
        state.arrive(question.settled(question.flat(usual.spec) if usual else {}))
    else:
        state.arrive_runs()
    if usual and not state.linked("run"):
        state.show(run=[usual.id], twin=[usual.twin] if usual.twin else [])


notes.guarded(page)()
