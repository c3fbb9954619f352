"""Pictures of equal size next to each other: the original, and what came back on each side."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

CSS = """
<style>
.ll-pictures { display: flex; gap: .8rem; margin: .2rem 0; flex-wrap: nowrap; }
.ll-pictures figure { margin: 0; flex: 1 1 0; min-width: 0; max-width: 240px; }
.ll-pictures img, .ll-pictures .ll-empty { width: 100%; aspect-ratio: 1; display: block; image-rendering: pixelated;
  background: var(--hair); }
.ll-pictures .ll-empty { display: grid; place-items: center; color: var(--faint); font-size: .85rem; padding: .5rem;
  text-align: center; }
.ll-pictures figure:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
.ll-pictures figcaption { margin-top: .3rem; line-height: 1.3; }
.ll-pictures figcaption b { display: block; font-weight: 600; }
.ll-pictures figcaption small { color: var(--faint); font-size: .85rem; }
.ll-pictures .ll-leaking b { color: var(--leaking); }
</style>
"""


@dataclass(frozen=True)
class SidePicture:
    """One picture with what is seen in it."""

    title: str
    png: str  # in base64; empty: nothing to show yet
    word: str  # the verdict, or what is going on
    alt: str
    leaks: bool = False


def show(pictures: Sequence[SidePicture]) -> None:
    """Draw the pictures in one row. A reader of the keyboard reaches each."""
    figures = "".join(_figure(picture) for picture in pictures)
    st.html(f'{CSS}<div class="ll-pictures">{figures}</div>')


def _figure(picture: SidePicture) -> str:
    alt = html.escape(picture.alt, quote=True)
    word = html.escape(picture.word)
    if picture.png:
        drawn = f'<img src="data:image/png;base64,{picture.png}" alt="{alt}">'
    else:
        drawn = f'<div class="ll-empty">{word}</div>'
        word = ""
    side = ' class="ll-leaking"' if picture.leaks else ""
    caption = f"<small>{html.escape(picture.title)}</small><b>{word}</b>"
    return f'<figure{side} tabindex="0" aria-label="{alt}">{drawn}<figcaption>{caption}</figcaption></figure>'
