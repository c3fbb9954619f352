"""The page Start."""

from __future__ import annotations

import streamlit as st

from app.screens.start.settings import STATE
from app.session import old_links, url


def page() -> None:
    """Draws the page, or opens the screen that an old link means."""
    screen = old_links.screen_of(url.params())
    if screen:
        url.open_screen(screen, url.params())
    STATE.open_link()
    st.html('<h1 class="ll-title">Her photo never left the phone. This is what the server rebuilt.</h1>')
    STATE.write_link()
