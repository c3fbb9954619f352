"""The page Leak: one picture, what its client sends, and what attackers reconstruct under several protections."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.leak import closer
from app.screens.leak import form as leak_form
from app.screens.leak import results as leak_results
from app.screens.leak.requests import STATE
from app.screens.leak.settings import LeakSettings
from app.session import messages, readiness, services, session, url
from app.texts import attack_form as form_texts
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError

# `leak-loading` is the place of the form before the engine is loaded: the grid below it must not move when the form
# appears. A phone shows the picture in place of the lead.
PAGE_CSS = """
<style>
.st-key-leak-loading { min-height: 307px; }
@media (max-width: 1100px) { .st-key-leak-loading { min-height: 456px; } }
@media (max-width: 700px) {
  .st-key-leak-loading { min-height: 139px; }
  .ll-leak-lead { display: none; }
  .stMain .ll-lead { font-size: 1rem; line-height: 1.45; margin: 0; }
}
</style>
"""


def page() -> None:
    try:
        shared = services.shared()
    except LeakLensError as error:
        readiness.show_home_error(error)
        return
    lead = f'<p class="ll-why ll-leak-lead">{html.escape(attack_texts.LEAD)}</p>'
    st.html(f'{PAGE_CSS}<h1 class="ll-title">{html.escape(attack_texts.PROMISE)}</h1>{lead}')
    if not shared.ready():
        with st.container(key="leak-loading"):
            url.keep_link("leak")
            readiness.show_loading()
        leak_results.example()
        return
    if shared.trouble:
        readiness.show_load_error()
        leak_results.example()
        return
    _open_link()
    _tabs()
    STATE.write_link()


def _tabs() -> None:
    """Draw the tab of what is lost. Only pictures are attacked on this page."""
    tab = STATE.current().tab
    st.segmented_control(
        form_texts.LOST, list(form_texts.TABS), required=True, label_visibility="collapsed",
        format_func=form_texts.TABS.__getitem__, **STATE.bind("tab"),
    )  # fmt: skip
    if tab == "pictures":
        leak_form.form()
        messages.guarded(_grid)()
        return
    if tab == "membership":
        st.html(f'<p class="ll-lead">{html.escape(form_texts.NO_MEMBERSHIP)}</p>')
        if st.button(form_texts.TO_RUNS, key="leak-to-runs"):
            url.open_screen("runs", {})
    else:
        st.html(f'<p class="ll-lead">{html.escape(form_texts.NO_SENTENCES)}</p>')
        st.button(form_texts.TO_PICTURES, key="leak-to-pictures", on_click=lambda: STATE.choose(tab="pictures"))


def _grid() -> None:
    """Draw the grid, and what is behind it."""
    view = leak_results.panel()
    if view:
        closer.panel(view)


def _open_link() -> None:
    """Take over the settings of a new link."""
    params = url.changed_link("leak")
    if params is None:
        return
    leak, notes = LeakSettings.read_link(params, LeakSettings.default())
    # Privacy: a rerun may end this pass at any access to the session: check before the settings are stored.
    leak, refusals = leak_form.with_available_picture(leak)
    STATE.take_over(leak, [*notes, *refusals])
    session.remember(closer.ARRIVED, bool(leak.closer))
