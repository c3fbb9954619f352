"""The Lab: ask on the left, watch on the right."""

from __future__ import annotations

import html

import streamlit as st

from app.batch import submit as batch_submit
from app.screens.lab import form as lab_form
from app.screens.lab import results as lab_results
from app.session import limits as class_limits
from app.session import messages, readiness, run_settings, services, url
from app.texts import product
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError


def page() -> None:
    try:
        kitchen = services.shared()
    except LeakLensError as error:  # the home cannot be used: nothing can be asked
        readiness.closed(error)
        return
    ready = kitchen.ready()
    usable = ready and not kitchen.trouble
    _top(usable)
    left, right = st.columns([1, 2], gap="large")
    _arrive(usable)
    with left:
        lab_form.form() if usable else readiness.broken() if ready else readiness.getting_ready()
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
                for one in services.gallery():
                    st.button(
                        one.title,
                        key=f"example-{one.name}",
                        help=one.lesson,
                        on_click=batch_submit.open_example,
                        args=(one,),
                    )
    if class_limits.class_mode():
        st.caption(product.SHARED.format(limits=class_limits.told(class_limits.caps())))


def _arrive(usable: bool) -> None:
    """The question and the runs that the link names; without a link, the first example."""
    usual = services.first_example()
    if usable:
        url.arrive(run_settings.settled(run_settings.flat(usual.spec) if usual else {}))
    else:
        url.arrive_runs()
    if usual and not url.linked("run"):
        url.show(run=[usual.id], twin=[usual.twin] if usual.twin else [])


messages.guarded(page)()
