"""Trade-off: several methods of one question, at several noises and seeds; accuracy against noise and against ε."""

from __future__ import annotations

import html
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.screens.tradeoff import form as tradeoff_form
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import results as tradeoff_results
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.cells import TradeoffView
from app.session import limits as class_limits
from app.session import messages, readiness, services, session, url
from app.texts import product
from app.texts import sweep as sweep_texts
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError
from engine.examples import sweep


def page() -> None:
    try:
        kitchen = services.shared()
    except LeakLensError as error:
        readiness.closed(error)
        return
    st.html(f'<h1 class="ll-title">{html.escape(sweep_texts.PROMISE)}</h1>{tradeoff_results.CSS}')
    if class_limits.class_mode():
        st.caption(product.SHARED.format(limits=class_limits.told(class_limits.caps())))
    left, right = st.columns([1, 2], gap="large")
    if not kitchen.ready() or kitchen.trouble:
        with left:
            readiness.broken() if kitchen.ready() else readiness.getting_ready()
        with right:
            if not url.in_address():
                _example()
        return
    _arrive()
    url.sign("tradeoff", tradeoff_settings.link(tradeoff_requests.asked()))
    with left:
        tradeoff_form.form()
    view = _view()
    with right:
        messages.guarded(_points)(view, left)
    chart_widget.listen_for_saves()


def _points(view: TradeoffView | None, left: DeltaGenerator) -> None:
    """What is known of every point on the right, and under the question on the left what a click would ask."""
    cells = tradeoff_results.read(view) if view else ()
    if view:
        tradeoff_results.show(view, cells)
    else:
        _example()
    with left:
        tradeoff_form.before(cells)


def _arrive() -> None:
    """The question that the link holds."""
    if (params := url.news("tradeoff")) is None:
        return
    found, told = tradeoff_settings.read_link(params, tradeoff_requests.asked())
    tradeoff_requests.arrive(found, told)


def _view() -> TradeoffView | None:
    """What is asked; while that cannot be asked, the last that could."""
    asked = tradeoff_requests.asked()
    try:
        points = tradeoff_requests.laid_out()
        found = TradeoffView(asked, points, tradeoff_settings.titles(), tradeoff_settings.headless(points))
    except LeakLensError:
        last: TradeoffView | None = session.recall("tradeoff-view")
        return replace(last, stale=True) if last else None
    session.remember("tradeoff-view", found)
    return found


def _example() -> None:
    """The stored frontier: it needs no engine."""
    if ship := sweep.frontier():
        view = TradeoffView(tradeoff_settings.TradeoffSettings(), (), ship.titles, ship.headless, live=False)
        tradeoff_results.show(view, tradeoff_results.read(view))


messages.guarded(page)()
