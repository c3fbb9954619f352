"""Trade-off: several methods of one question, at several noises and seeds; accuracy against noise and against ε."""

from __future__ import annotations

import html
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import (
    ask,
    charts,
    classroom,
    notes,
    state,
    tradeoff,
    tradeoff_ask,
    tradeoff_orders,
    tradeoff_watch,
    words,
    words_tradeoff,
)
from app.tradeoff_cells import View
from engine.errors import LeakLensError
from engine.examples import sweep


def page() -> None:
    try:
        kitchen = state.kitchen()
    except LeakLensError as error:
        ask.closed(error)
        return
    st.html(f'<h1 class="ll-title">{html.escape(words_tradeoff.PROMISE)}</h1>{tradeoff_watch.CSS}')
    if classroom.class_mode():
        st.caption(words.SHARED.format(limits=classroom.told(classroom.caps())))
    left, right = st.columns([1, 2], gap="large")
    if not kitchen.ready() or kitchen.trouble:
        with left:
            ask.broken() if kitchen.ready() else ask.getting_ready()
        with right:
            if not state.in_address():
                _example()
        return
    _arrive()
    state.sign("tradeoff", tradeoff.link(tradeoff_orders.asked()))
    with left:
        tradeoff_ask.form()
    view = _view()
    with right:
        notes.guarded(_points)(view, left)
    charts.listen_for_saves()


def _points(view: View | None, left: DeltaGenerator) -> None:
    """What is known of every point on the right, and under the question on the left what a click would ask."""
    cells = tradeoff_watch.read(view) if view else ()
    if view:
        tradeoff_watch.show(view, cells)
    else:
        _example()
    with left:
        tradeoff_ask.before(cells)


def _arrive() -> None:
    """The question that the link holds."""
    if (params := state.news("tradeoff")) is None:
        return
    found, told = tradeoff.read_link(params, tradeoff_orders.asked())
    tradeoff_orders.arrive(found, told)


def _view() -> View | None:
    """What is asked; while that cannot be asked, the last that could."""
    asked = tradeoff_orders.asked()
    try:
        points = tradeoff_orders.laid_out()
        found = View(asked, points, tradeoff.titles(), tradeoff.headless(points))
    except LeakLensError:
        last: View | None = state.recall("tradeoff-view")
        return replace(last, stale=True) if last else None
    state.remember("tradeoff-view", found)
    return found


def _example() -> None:
    """The stored frontier: it needs no engine."""
    if ship := sweep.frontier():
        view = View(tradeoff.Tradeoff(), (), ship.titles, ship.headless, live=False)
        tradeoff_watch.show(view, tradeoff_watch.read(view))


notes.guarded(page)()
