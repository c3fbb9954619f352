"""One-line messages on a page, and the message in place of a page whose store cannot be read."""

from __future__ import annotations

import html
import logging
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


DAMAGED = "Run {run} cannot be shown: its stored data are damaged. Delete it, then run it again."
# What reading damaged data raises. Tests of undamaged data empty this, so that no error of the program is hidden.
DATA_ERRORS: tuple[type[Exception], ...] = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError,
)  # fmt: skip


def show_stored(run: str, draw: Callable[[], None]) -> bool:
    """Draw something from the stored data of a run. If these are damaged, show a sentence instead; return whether."""
    try:
        draw()
    except DATA_ERRORS as error:
        logging.getLogger(__name__).warning("run %s cannot be shown: %s: %s", run, type(error).__name__, error)
        show("problem", DAMAGED.format(run=run))
        return False
    return True


def guarded(draw: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """`draw`, which shows a LeakLensError as one sentence. Every page and every fragment needs this wrapper."""

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            draw(*args, **kwargs)
        except LeakLensError as error:
            show("problem", str(error))

    return drawn
