"""The page of the Lab: the form on the left, the results on the right."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.lab import form as lab_form
from app.screens.lab import requests as lab_requests
from app.screens.lab import results as lab_results
from app.session import limits as class_limits
from app.session import messages, readiness, run_settings, services, url
from app.texts import product
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError


def page() -> None:
    """Draws the whole page."""
    try:
        shared = services.shared()
    except LeakLensError as error:  # without a usable home, no run can start
        readiness.show_home_error(error)
        return
    ready = shared.ready()
    usable = ready and not shared.trouble
    _top(usable)
    left, right = st.columns([1, 2], gap="large")
    _open_link(usable)
    with left:
        if usable:
            lab_form.form()
        elif ready:
            readiness.show_load_error()
        else:
            readiness.show_loading()
    with right:
        messages.guarded(lab_results.panel)()
    chart_widget.listen_for_saves()
    if usable:
        url.write_link()


def _top(usable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(f'<h1 class="ll-title">{html.escape(product.PROMISE)}</h1>', width="stretch")
        if usable:
            with st.popover("Examples"):
                for error in services.example_errors():
                    messages.show("problem", str(error))
                for example in services.stored_examples():
                    st.button(
                        example.title,
                        key=f"example-{example.name}",
                        help=example.lesson,
                        on_click=lab_requests.open_example,
                        args=(example,),
                    )
    if class_limits.class_mode():
        st.caption(product.SHARED.format(limits=class_limits.limits_text(class_limits.caps())))


def _open_link(usable: bool) -> None:
    """Reads the settings and the runs from the link. Without a link, the page opens with the first example."""
    example = services.first_example()
    if usable:
        url.read_settings(run_settings.completed(run_settings.flat(example.spec) if example else {}))
    else:
        url.read_runs()
    if example and not url.linked("run"):
        url.show(run=[example.id], twin=[example.baseline] if example.baseline else [])
