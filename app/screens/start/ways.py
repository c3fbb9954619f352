"""The ways from Start to the other screens: two doors with the shown stop, and questions that have a stored answer."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.screens.start import texts
from app.screens.start.requests import STATE
from app.screens.start.settings import StartSettings
from app.session import run_settings
from app.session.screens import screen
from engine.examples.start import StartExample


def doors(example: StartExample | None) -> None:
    """The links to Try, with exactly the shown stop, and to Trade-off."""
    start = STATE.current()
    if example:
        _link("try", texts.TRY, try_link(example, start))
    _link("tradeoff", texts.TRADEOFF, {"eyes": start.eyes})


def try_link(example: StartExample, start: StartSettings) -> dict[str, str]:
    """The address of Try with the run, the picture and the upload of the shown stop."""
    stop = example.stops[min(start.stop, len(example.stops) - 1)]
    whose = f"{start.picture}-0"
    content = "1" if start.own else start.content
    return {
        "whose": whose,
        "content": content,
        "eyes": start.eyes,
        **run_settings.link(run_settings.flat(stop.run.spec)),
    }


def questions() -> None:
    """The common questions. Each link opens the screen and the settings that answer it without a run."""
    with st.container(key="start-questions"):
        st.html(f'<h2 class="ll-title">{texts.QUESTIONS}</h2>')
        row = st.container(horizontal=True, key="start-links")
    with row:
        for title, (name, params) in answers().items():
            _link(name, title, params)


def answers() -> dict[str, tuple[str, dict[str, str]]]:
    """The screen and the parameters that answer each question."""
    return {
        texts.SAFE: ("leak", {"whose": "test-0", "against": "none,fedceo:0.01,fedceo:0.1,fedceo:1", "eyes": "server"}),
        texts.HIDES: ("leak", {"whose": "test-0", "closer": "cliff", "eyes": "server"}),
        texts.HALF: ("try", {"b": "method.noise=1", "eyes": STATE.current().eyes}),
        texts.WHO_ELSE: ("leak", {"whose": "test-0", "closer": "ladder", "eyes": "server"}),
        texts.COST: ("tradeoff", {"eyes": STATE.current().eyes}),
        texts.YOURSELF: ("leak", {"whose": "test-0", "closer": "test", "eyes": "server"}),
    }


def _link(name: str, title: str, params: Mapping[str, str]) -> None:
    st.page_link(screen(name).streamlit_page(), label=title, query_params=dict(params))
