"""The Lab: ask on the left, watch on the right."""

from __future__ import annotations

import html

import streamlit as st

from app import ask, charts, classroom, live, orders, question, state, words


def page() -> None:
    ready, usual = state.kitchen().ready(), state.first_example()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(f'<h1 class="ll-title">{html.escape(words.PROMISE)}</h1>', width="stretch")
        if ready:
            with st.popover("Examples"):
                for one in state.gallery():
                    st.button(
                        one.title, key=f"example-{one.name}", help=one.lesson, on_click=orders.open_example, args=(one,)
                    )
    if classroom.class_mode():
        st.caption(words.SHARED.format(limits=classroom.told(classroom.caps())))
    left, right = st.columns([1, 2], gap="large")
    if ready:
        state.arrive(question.settled(question.flat(usual.spec) if usual else {}))
    else:
        state.arrive_runs()
    if usual and not state.linked("run"):
        state.show(run=[usual.id], twin=[usual.twin] if usual.twin else [])
    with left:
        ask.form() if ready else ask.getting_ready()
    with right:
        live.panel()
    charts.listen_for_saves()
    if ready:
        state.write_link()


page()
