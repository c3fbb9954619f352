"""The button `?` of the header: twelve words, each with one sentence and one still."""

from __future__ import annotations

import html

import streamlit as st

from app.texts import glossary

CSS = """
<style>
.ll-words { margin: 0; padding: 0 !important; }
.ll-words div { display: grid; grid-template-columns: 96px 1fr; gap: .1rem 1rem; padding: .6rem 0;
  border-top: 1px solid var(--hair); margin: 0; }
.ll-words dt { font-weight: 600; grid-column: 2; } .ll-words dd { margin: 0; grid-column: 2; }
.ll-words img { grid-row: 1 / 3; width: 96px; height: 64px; }
</style>
"""


def button() -> None:
    """Draws the button, which opens the words at the side."""
    if st.button(glossary.BUTTON, key="glossary", type="tertiary", help=glossary.BUTTON_HELP):
        _words()


@st.dialog(glossary.TITLE, position="right")
def _words() -> None:
    entries = []
    for word in glossary.WORDS:
        still = f'<img src="{word.src}" alt="">'
        entries.append(f"<div>{still}<dt>{html.escape(word.word)}</dt><dd>{html.escape(word.sentence)}</dd></div>")
    st.html(f'{CSS}<dl class="ll-words">{"".join(entries)}</dl>')
