"""The content of a page before the engine is loaded, or if it cannot be loaded."""

from __future__ import annotations

import html

import streamlit as st

from app.session import services
from app.texts import product
from engine.errors import LeakLensError

WAIT_S = 0.3


def show_loading() -> None:
    """Show a waiting message until the shelves are loaded, about two seconds after a cold start."""

    @st.fragment(run_every=WAIT_S)
    def waiting() -> None:
        if services.shared().ready():
            st.rerun()
        st.html(f'<p class="ll-lead ll-faint" role="status">{product.GETTING_READY}</p>')

    waiting()


def show_home_error(error: LeakLensError) -> None:
    """Show that the home or the store cannot be used."""
    st.html(f'<h1 class="ll-title">{html.escape(product.PROMISE)}</h1>')
    st.html(f'<p class="ll-problem" role="alert">{html.escape(str(error))}</p>')
    st.button("Try again", key="try-again")


def show_load_error() -> None:
    """Show why the shelves could not be loaded: a part of the installation is missing."""
    trouble = services.shared().trouble
    explained = isinstance(trouble, LeakLensError)
    message = str(trouble) if explained else product.BROKEN_SHELVES.format(error=trouble)
    st.html(f'<p class="ll-problem" role="alert">{html.escape(message)}</p>')
