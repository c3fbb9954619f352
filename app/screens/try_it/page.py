"""The page Try: the form, the three panels, and what follows from them."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.try_it import form as try_form
from app.screens.try_it import results as try_results
from app.screens.try_it import texts as try_texts
from app.screens.try_it.settings import STATE
from app.session import limits as class_limits
from app.session import messages, readiness, run_settings, services, url
from app.texts import product
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError


def page() -> None:
    """Draw the whole page."""
    try:
        shared = services.shared()
    except LeakLensError as error:  # without a usable home, no run can start
        readiness.show_home_error(error)
        return
    st.html(f'<h1 class="ll-title">{html.escape(try_texts.TITLE)}</h1>')
    if not shared.ready():
        url.keep_link("try")
        readiness.show_loading()
        return
    if shared.trouble:
        readiness.show_load_error()
        return
    if class_limits.class_mode():
        st.caption(product.SHARED.format(limits=class_limits.limits_text(class_limits.caps())))
    STATE.open_link()
    messages.guarded(_content)()
    for damage in services.example_errors():
        messages.show("problem", str(damage))
    chart_widget.listen_for_saves()
    STATE.write_link()


def _content() -> None:
    try_results.panel(try_form.form())


def from_lab() -> None:
    """Open the same question as an old link of the Lab: what the link leaves out has the Lab's default."""
    try:
        ready = services.shared().ready()
    except LeakLensError as error:
        readiness.show_home_error(error)
        return
    if not ready:
        readiness.show_loading()
        return
    example = services.first_example()
    default = run_settings.completed(run_settings.flat(example.spec) if example else {})
    params = url.params()
    settings, _ = run_settings.read_link(params, default)
    url.open_screen("try", {**run_settings.link(settings), **params})  # what was not used, Try reports
