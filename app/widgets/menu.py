"""The header of every screen: the name of the product, the screens, and the one observer."""

from __future__ import annotations

import streamlit as st

from app.session import observer, session
from app.session.screens import SCREENS, screen
from app.texts import privacy, product
from app.widgets import glossary

CSS = """
<style>
:root { --styled-menu: var(--styled-theme); }
.st-key-menu { position: fixed; inset: 0 0 auto 0; z-index: 999991; height: 3.2rem; padding: 0 5rem 0 1.5rem;
  gap: 1.2rem; background: light-dark(#FFFFFF, #0B1220); border-bottom: 1px solid var(--hair); flex-wrap: nowrap; }
:has(> .st-key-menu) { position: absolute; }  /* it takes no room of the page */
.st-key-menu > div { flex: 0 0 auto; width: auto; }
.st-key-product p { font-weight: 700; font-size: 1.1rem; }
.st-key-menu a { border-radius: 0; background: none !important; padding: .2rem .1rem; }
.st-key-menu a:hover p { text-decoration: underline; }
.st-key-menu p { color: var(--ink); }
.st-key-menu a:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; box-shadow: none; }
.st-key-screens { gap: 1.2rem; flex-wrap: nowrap; }
.st-key-screens > div { width: auto; flex: 0 0 auto; }
:has(> .st-key-home) { display: none; }  /* on the desk, the name of the product opens it */
.st-key-more button { border: 0; background: none; padding: .2rem .1rem; min-height: 0; }
.st-key-more button:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
:has(> .st-key-observer) { margin-left: auto; }
.st-key-observer [data-testid="stSelectbox"] { display: flex; align-items: center; gap: .6rem; }
.st-key-glossary button { min-height: 2.4rem; min-width: 1.8rem; font-weight: 700; }
.st-key-observer label { margin: 0; min-height: 0; padding: 0; white-space: nowrap; }
.st-key-observer .react-aria-ComboBox { width: 13rem; }
@media (max-width: 1000px) { .st-key-observer label { position: absolute; clip-path: inset(50%); } }
@media (min-width: 720px) and (max-width: 1000px) {
  .st-key-observer [data-testid="stSelectbox"]::before { content: "SHORT_HEADER"; white-space: nowrap; }
}
@media (max-width: 700px) {
  .stMain .block-container { margin-bottom: 3.2rem; }
  .st-key-menu { padding: 0 3.2rem 0 1rem; gap: .6rem; }
  .st-key-observer .react-aria-ComboBox { width: 11.6rem; }
  :has(> .st-key-home) { display: block; }
  .st-key-screens { position: fixed; inset: auto 0 0 0; height: 3.2rem; gap: 0;
    background: light-dark(#FFFFFF, #0B1220); border-top: 1px solid var(--hair); }
  .st-key-screens > div { flex: 1 1 0; min-width: 0; }
  .st-key-home, .st-key-home > div, .st-key-home .stPageLink, .st-key-more { width: 100%; }
  .st-key-screens a, .st-key-more button { justify-content: center; text-align: center; line-height: 1.1; width: 100%; }
  .st-key-screens a, .st-key-more button { min-height: 2.75rem; }
  .st-key-screens p { white-space: normal; font-size: .9rem; }
}
</style>
"""


def menu() -> None:
    """Draws the header: a bar at the top, and on a phone the screens at the foot of the page."""
    st.html(CSS.replace("SHORT_HEADER", privacy.SHORT_HEADER))
    with st.container(key="menu", horizontal=True, vertical_alignment="center"):
        with st.container(key="product"):
            st.page_link(SCREENS[0].streamlit_page(), label=product.PRODUCT)
        with st.container(key="screens", horizontal=True, vertical_alignment="center"):
            _screens()
        with st.container(key="observer"):
            _observer()
        with st.container(key="glossary-button"):
            glossary.button()


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
        privacy.HEADER, observer.offered(), format_func=privacy.WHO.__getitem__,
        **session.bind("observer-choice", observer.current(), observer.choose),
    )  # fmt: skip
