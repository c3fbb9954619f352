"""One-line messages on a page, and the message in place of a page whose store cannot be read."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from engine.errors import LeakLensError

Arguments = ParamSpec("Arguments")


def show(kind: str, text: str) -> None:
    """Show a message. A screen reader reads a `problem` at once, and every other kind when it is idle."""
    role = "alert" if kind == "problem" else "status"
    st.html(f'<p class="ll-{kind}" role="{role}">{html.escape(text)}</p>')


def explain(text: str) -> None:
    st.html(f'<p class="ll-why">{html.escape(text)}</p>')


def guarded(draw: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """`draw`, which shows a LeakLensError as one sentence. Every page and every fragment needs this wrapper."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            draw(*args, **kwargs)
        except LeakLensError as error:
            show("problem", str(error))

    return drawn
