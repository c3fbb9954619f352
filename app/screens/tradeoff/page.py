"""The page Trade-off: accuracy against noise and against ε, for several methods, noises and seeds of one run."""

from __future__ import annotations

import html
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.screens.tradeoff import form as tradeoff_form
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import results as tradeoff_results
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.cells import TradeoffView
from app.screens.tradeoff.requests import STATE
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import limits as class_limits
from app.session import messages, readiness, services, session, url
from app.texts import product
from app.texts import sweep as sweep_texts
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError
from engine.examples import sweep

CSS = """
<style>
@media (max-width: 700px) {  /* the result comes first on a phone, and the form below it */
  .st-key-tradeoff-page > [data-testid="stHorizontalBlock"],
  .st-key-tradeoff-page > div > [data-testid="stHorizontalBlock"] { flex-direction: column-reverse; }
}
</style>
"""


def page() -> None:
    try:
        shared = services.shared()
    except LeakLensError as error:
        readiness.show_home_error(error)
        return
    st.html(f'<h1 class="ll-title">{html.escape(sweep_texts.PROMISE)}</h1>{CSS}')
    if class_limits.class_mode():
        st.caption(product.SHARED.format(limits=class_limits.limits_text(class_limits.caps())))
    with st.container(key="tradeoff-page"):
        left, right = st.columns([1, 2], gap="large")
    if not shared.ready() or shared.trouble:
        with left:
            if shared.ready():
                readiness.show_load_error()
            else:
                url.keep_link("tradeoff")
                readiness.show_loading()
        with right:
            if not url.params():
                _example()
        return
    STATE.open_link()
    STATE.write_link()
    with left:
        tradeoff_form.form()
    view = _view()
    with right:
        messages.guarded(_results)(view, left)
    chart_widget.listen_for_saves()


def _results(view: TradeoffView | None, left: DeltaGenerator) -> None:
    """Draw the results on the right, and the button that runs the missing points below the form on the left."""
    cells = tradeoff_results.read(view) if view else ()
    if view:
        tradeoff_results.show(view, cells)
    else:
        _example()
    with left:
        tradeoff_form.run_button(cells)


def _view() -> TradeoffView | None:
    """Return the points of the current settings, or the previous points while the settings are invalid."""
    settings = STATE.current()
    try:
        points = tradeoff_requests.points()
        view = TradeoffView(settings, points, sweep_points.titles(), sweep_points.headless(points))
    except LeakLensError:
        last: TradeoffView | None = session.recall("tradeoff-view")
        return replace(last, stale=True) if last else None
    session.remember("tradeoff-view", view)
    return view


def _example() -> None:
    """Draw the stored frontier. It needs no engine."""
    example = sweep.sweep_example()
    error = sweep.load_error()
    if error:
        messages.show("problem", str(error))
    if example:
        settings = TradeoffSettings()
        view = TradeoffView(settings, (), example.titles, example.headless, live=False)
        tradeoff_results.show(view, tradeoff_results.read(view))
