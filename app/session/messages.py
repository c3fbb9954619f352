"""What a page says of itself in a line, and what stands there where the store breaks while the page is open."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from engine.errors import LeakLensError

Given = ParamSpec("Given")


def say(kind: str, text: str) -> None:
    """`problem` is told at once to who listens, everything else when there is time."""
    role = "alert" if kind == "problem" else "status"
    st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(text)}</p>')


def why(text: str) -> None:
    st.html(f'<p class="ll-why">{html.escape(text)}</p>')


def guarded(draw: Callable[Given, None]) -> Callable[Given, None]:
    """The same, with a sentence for a traceback: a page and each of its fragments is drawn through this."""

    @wraps(draw)
    def drawn(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            draw(*given, **named)
        except LeakLensError as error:
            say("problem", str(error))

    return drawn
