"""The page Start: one photo, what an observer rebuilds from its upload, and what hiding it costs."""

from __future__ import annotations

import html

import streamlit as st

from app.screens.start import hero, photo, requests, texts, ways
from app.screens.start.requests import STATE
from app.session import messages, old_links, services, url
from engine.errors import LeakLensError
from engine.examples import start as start_files

CSS = """
<style>
.st-key-start h1.ll-title { font-size: 1.6rem; margin: 0; min-height: 1.3em; line-height: 1.25;
  text-wrap: balance; }
.st-key-start { gap: .8rem; --styled: var(--styled-menu); }
.st-key-start-doors { margin-top: .3rem; gap: .6rem 1.6rem; }
.st-key-start-links { gap: .2rem 1.6rem; }
.st-key-start-questions { gap: .3rem; margin-top: .4rem; padding-top: .8rem; border-top: 1px solid var(--hair); }
.st-key-start-questions a, .st-key-start-doors a { padding: .2rem 0; background: none !important; }
.st-key-start-questions a p { text-decoration: underline; text-underline-offset: .18em; font-size: .95rem; }
.st-key-start-doors a p { font-weight: 600; }
.ll-start-lead { margin: .25rem 0 0; }
@media (max-width: 700px) {
  .ll-start-lead { display: none; }  /* the picture comes first */
  .st-key-start h1.ll-title { font-size: 1.12rem; min-height: 2.5em; }
  .st-key-start { gap: .35rem; }
}
</style>
"""


def page() -> None:
    """Draws the page, or opens the screen that an old link means."""
    screen = old_links.screen_of(url.params())
    if screen:
        url.open_screen(screen, url.params())
    requests.open_link()
    with st.container(key="start"):
        _content()
    STATE.write_link()
    services.shared()  # the engine loads while the visitor looks: nothing above needs it


def _content() -> None:
    """The stored table comes first: it needs neither the engine nor the store."""
    start = STATE.current()
    title = texts.headline(start.eyes, bool(start.own), services.at_home())
    lead = texts.OWN_LEAD if start.own else texts.LEAD
    st.html(
        f'{CSS}<h1 class="ll-title">{html.escape(title)}</h1><p class="ll-why ll-start-lead">{html.escape(lead)}</p>'
    )
    for note in STATE.notes():
        messages.show("note", note)
    if STATE.trouble():
        messages.show("problem", STATE.trouble())
    example = start_files.start_example()
    if example is None:
        error: LeakLensError | None = start_files.load_error()
        messages.show("problem", str(error or texts.MISSING))
    else:
        hero.draw(example)
    with st.container(horizontal=True, vertical_alignment="center", key="start-doors"):
        photo.control()
        ways.doors(example)
    ways.questions()
