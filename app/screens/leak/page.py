"""The page Leak: one picture, what its client sends, and what attackers reconstruct under several protections."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.leak import closer
from app.screens.leak import form as leak_form
from app.screens.leak import results as leak_results
from app.screens.leak.requests import STATE
from app.screens.leak.settings import LeakSettings
from app.session import messages, readiness, services, url
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError


def page() -> None:
    try:
        shared = services.shared()
    except LeakLensError as error:
        readiness.show_home_error(error)
        return
    _redirect()
    lead = f'<p class="ll-why">{html.escape(attack_texts.LEAD)}</p>'
    st.html(f'<h1 class="ll-title">{html.escape(attack_texts.PROMISE)}</h1>{lead}')
    if not shared.ready():
        readiness.show_loading()
        leak_results.example()
        return
    if shared.trouble:
        readiness.show_load_error()
        leak_results.example()
        return
    _open_link()
    leak_form.form()
    messages.guarded(_grid)()
    STATE.write_link()


def _grid() -> None:
    """Draw the grid, and what is behind it."""
    view = leak_results.panel()
    if view:
        closer.panel(view)


def _redirect() -> None:
    """Open the Lab for links from the time when the Lab was the first page."""
    params = url.params()
    if LeakSettings.is_lab_link(params):
        url.open_screen("lab", params)


def _open_link() -> None:
    """Take over the settings of a new link."""
    params = url.changed_link("leak")
    if params is None:
        return
    leak, notes = LeakSettings.read_link(params, LeakSettings.default())
    # Privacy: a rerun may end this pass at any access to the session: check before the settings are stored.
    leak, refusals = leak_form.with_available_picture(leak)
    STATE.take_over(leak, [*notes, *refusals])
