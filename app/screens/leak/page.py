"""Leak: one picture, what its owner sent, and what attackers get back from that under several protections."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.leak import form as leak_form
from app.screens.leak import further
from app.screens.leak import requests as leak_requests
from app.screens.leak import results as leak_results
from app.screens.leak import settings as leak_settings
from app.session import messages, readiness, services, session, url
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError


def page() -> None:
    try:
        kitchen = services.shared()
    except LeakLensError as error:
        readiness.closed(error)
        return
    _redirect()
    lead = f'<p class="ll-why">{html.escape(attack_texts.LEAD)}</p>'
    st.html(f'<h1 class="ll-title">{html.escape(attack_texts.PROMISE)}</h1>{lead}')
    if not kitchen.ready():
        readiness.getting_ready()
        leak_results.example()
        return
    if kitchen.trouble:
        readiness.broken()
        leak_results.example()
        return
    _arrive()
    leak_form.form()
    messages.guarded(leak_results.panel)()
    further.panels()
    url.sign("leak", leak_settings.link(leak_requests.leak()))


def _redirect() -> None:
    """Links that were made while the Lab was the first page still lead there."""
    params = url.in_address()
    if leak_settings.elsewhere(params):
        url.leave("lab", params)


def _arrive() -> None:
    """The question that the link holds."""
    if (params := url.news("leak")) is None:
        return
    found, told = leak_settings.read_link(params)
    session.remember("leak", found)
    session.remember("leak-told", [*told, *leak_form.missing(found)])


messages.guarded(page)()
