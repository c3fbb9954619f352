"""The header of every screen: the name of the product, the screens, and the one observer."""

from __future__ import annotations

import streamlit as st

from app.session import observer, session
from app.session.screens import SCREENS, screen
from app.texts import privacy, product

CSS = """
<style>
.st-key-menu { position: fixed; inset: 0 0 auto 0; z-index: 999991; height: 3.2rem; padding: 0 5rem 0 1.5rem;
  gap: 1.2rem; background: light-dark(#FFFFFF, #0B1220); border-bottom: 1px solid var(--hair); flex-wrap: nowrap; }
:has(> .st-key-menu) { position: absolute; }  /* it takes no room of the page */
.st-key-menu > div { flex: 0 0 auto; width: auto; }
.st-key-product p { font-weight: 700; font-size: 1.1rem; }
.st-key-menu a { border-radius: 0; background: none !important; padding: .2rem .1rem; }
.st-key-menu a:hover p { text-decoration: underline; }
.st-key-menu p { color: var(--ink); }
.st-key-menu a:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; box-shadow: none; }
.st-key-screens { gap: 1.2rem; }
.st-key-home { display: none; }  /* on the desk, the name of the product opens it */
.st-key-more button { border: 0; background: none; padding: .2rem .1rem; min-height: 0; }
.st-key-observer { margin-left: auto; flex-direction: row !important; align-items: center; gap: .6rem; }
.st-key-observer label { margin: 0; min-height: 0; padding: 0; white-space: nowrap; }
.st-key-observer [data-testid="stSelectbox"] { display: flex; align-items: center; gap: .6rem; width: auto; }
.st-key-observer [data-baseweb="select"] { min-width: 13.5rem; }
@media (max-width: 1000px) { .st-key-observer label { display: none; } }
@media (max-width: 700px) {
  .stMain .block-container { margin-bottom: 3.2rem; }
  .st-key-menu { padding: 0 3.2rem 0 1rem; }
  .st-key-observer [data-baseweb="select"] { min-width: 11.5rem; }
  .st-key-home { display: block; }
  .st-key-screens { position: fixed; inset: auto 0 0 0; height: 3.2rem; gap: 0;
    flex-wrap: nowrap; background: light-dark(#FFFFFF, #0B1220); border-top: 1px solid var(--hair); }
  .st-key-screens > div { flex: 1 1 0; }
  .st-key-screens a { justify-content: center; text-align: center; line-height: 1.1; }
  .st-key-screens p { white-space: normal; font-size: .9rem; }
  .st-key-more button { width: 100%; }
}
</style>
"""


def menu() -> None:
    """Draws the header: a bar at the top, and on a phone the screens at the foot of the page."""
    st.html(CSS)
    with st.container(key="menu", horizontal=True, vertical_alignment="center"):
        with st.container(key="product"):
            st.page_link(SCREENS[0].streamlit_page(), label=product.PRODUCT)
        with st.container(key="screens", horizontal=True, vertical_alignment="center"):
            _screens()
        with st.container(key="observer"):
            _observer()


def _screens() -> None:
    with st.container(key="home"):
        st.page_link(screen("start").streamlit_page(), label=product.HOME)
    for each in SCREENS:
        if each.menu == "bar":
            st.page_link(each.streamlit_page())
    with st.container(key="more"), st.popover(product.MORE):
        for each in SCREENS:
            if each.menu == "more":
                st.page_link(each.streamlit_page())


def _observer() -> None:
    st.selectbox(
        privacy.HEADER, observer.offered(), format_func=privacy.WHO.__getitem__, required=True,
        **session.bind("observer-choice", observer.current(), observer.choose),
    )  # fmt: skip
