"""The menu: the name of the product, which opens the first screen, and the screens."""

from __future__ import annotations

import streamlit as st

from app.session.screens import SCREENS
from app.texts import product

CSS = """
<style>
.st-key-menu { position: fixed; inset: 0 0 auto 0; z-index: 999991; height: 3.2rem; padding: 0 5rem 0 1.5rem;
  gap: 1.2rem; background: light-dark(#FFFFFF, #0B1220); border-bottom: 1px solid var(--hair); }
:has(> .st-key-menu) { position: absolute; }  /* it takes no room of the page */
.st-key-menu > div { flex: 0 0 auto; width: auto; }
.st-key-product p { font-weight: 700; font-size: 1.1rem; }
.st-key-menu a { border-radius: 0; background: none !important; padding: .2rem .1rem; }
.st-key-menu a:hover p { text-decoration: underline; }
.st-key-menu p { color: var(--ink); }
.st-key-menu a:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; box-shadow: none; }
@media (max-width: 700px) {
  .stMain .block-container { margin-bottom: 3.2rem; }
  .st-key-menu { padding-left: 1rem; }
  .st-key-screens { position: fixed; inset: auto 0 0 0; height: 3.2rem; gap: 0;
    flex-wrap: nowrap; background: light-dark(#FFFFFF, #0B1220); border-top: 1px solid var(--hair); }
  .st-key-screens > div { flex: 1 1 0; }
  .st-key-screens a { justify-content: center; text-align: center; line-height: 1.1; }
  .st-key-screens p { white-space: normal; font-size: .9rem; }
}
</style>
"""


def menu() -> None:
    """Draws the menu: a bar at the top, and on a phone the screens at the foot of the page."""
    st.html(CSS)
    with st.container(key="menu", horizontal=True, vertical_alignment="center"):
        with st.container(key="product"):
            st.page_link(SCREENS[0].streamlit_page(), label=product.PRODUCT)
        with st.container(key="screens", horizontal=True, vertical_alignment="center"):
            for screen in SCREENS:
                if not screen.hidden:
                    st.page_link(screen.streamlit_page())
