"""Leak: one picture, what its owner sent, and what attackers get back from that under several protections."""

from __future__ import annotations

import html

import streamlit as st

from app import ask, leak_ask, leak_more, leak_orders, leak_watch, leaks, notes, state, words_leak
from engine.errors import LeakLensError


def page() -> None:
    try:
        kitchen = state.kitchen()
    except LeakLensError as error:
        ask.closed(error)
        return
    _redirect()
    lead = f'<p class="ll-why">{html.escape(words_leak.LEAD)}</p>'
    st.html(f'<h1 class="ll-title">{html.escape(words_leak.PROMISE)}</h1>{lead}')
    if not kitchen.ready():
        ask.getting_ready()
        leak_watch.example()
        return
    if kitchen.trouble:
        ask.broken()
        leak_watch.example()
        return
    _arrive()
    leak_ask.form()
    notes.guarded(leak_watch.panel)()
    leak_more.panels()
    state.sign("leak", leaks.link(leak_orders.leak()))


def _redirect() -> None:
    """Links that were made while the Lab was the first page still lead there."""
    params = state.in_address()
    if leaks.elsewhere(params):
        state.leave("lab", params)


def _arrive() -> None:
    """The question that the link holds."""
    if (params := state.news("leak")) is None:
        return
    found, told = leaks.read_link(params)
    state.remember("leak", found)
    state.remember("leak-told", [*told, *leak_ask.missing(found)])


notes.guarded(page)()
