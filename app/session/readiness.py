"""What stands on a page before the engine is loaded, or where it cannot be used."""

from __future__ import annotations

import html

import streamlit as st

from app.session import services
from app.texts import product
from engine.errors import LeakLensError

WAIT_S = 0.3


def getting_ready() -> None:
    """Before the shelves are loaded: two seconds after a cold start."""

    @st.fragment(run_every=WAIT_S)
    def waiting() -> None:
        if services.shared().ready():
            st.rerun()
        st.html(f'<p class="ll-said ll-faint" role="status">{product.GETTING_READY}</p>')

    waiting()


def closed(error: LeakLensError) -> None:
    """The home or the store cannot be used."""
    st.html(f'<h1 class="ll-title">{html.escape(product.PROMISE)}</h1>')
    st.html(f'<p class="ll-problem" role="alert">{html.escape(str(error))}</p>')
    st.button("Try again", key="try-again")


def broken() -> None:
    """The shelves could not be loaded: a part of the installation is missing."""
    trouble = services.shared().trouble
    said = str(trouble) if isinstance(trouble, LeakLensError) else product.BROKEN_SHELVES.format(error=trouble)
    st.html(f'<p class="ll-problem" role="alert">{html.escape(said)}</p>')
