"""The page Try."""

from __future__ import annotations

import streamlit as st

from app.screens.try_it.settings import STATE
from app.session import readiness, run_settings, services, url


def page() -> None:
    """Draws the whole page."""
    shared = services.shared()
    if not shared.ready():
        readiness.show_loading()
        return
    STATE.open_link()
    st.html('<h1 class="ll-title">What if?</h1>')
    STATE.write_link()


def from_lab() -> None:
    """Open the same question as an old link of the Lab: what the link leaves out has the Lab's default."""
    if not services.shared().ready():
        readiness.show_loading()
        return
    example = services.first_example()
    default = run_settings.completed(run_settings.flat(example.spec) if example else {})
    params = url.params()
    settings, _ = run_settings.read_link(params, default)
    kept = {name: text for name, text in params.items() if name in ("seeds", "pins", "eyes")}
    url.open_screen("try", {**run_settings.link(settings), **kept})
