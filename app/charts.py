"""A panel on the page: its figure, its words for those who cannot see it, and its picture to take away."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from app import state
from app.panels import partition as who_holds_what
from app.panels.base import Panel, Track

CONFIG = {"displaylogo": False, "displayModeBar": False, "scrollZoom": False}


def show(panel: Panel[Any], tracks: Sequence[Track]) -> bool:
    """The panel, where any of these runs has said something it listens to."""
    found = panel.collected(tracks)
    if not found:
        return False
    st.html(f'<h2 class="ll-title">{panel.title}</h2>')
    st.plotly_chart(
        panel.draw(found, state.dark()), key=f"chart-{panel.name}", theme=None, config=CONFIG, alt=panel.tell(found)
    )
    return True


def partition(counts: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    words = who_holds_what.tell(counts)
    drawn = who_holds_what.draw(counts, state.dark(), names)
    st.plotly_chart(drawn, key="chart-partition", theme=None, config=CONFIG, alt=words)
    st.caption(words)


def to_take_away(panels: Sequence[Panel[Any]]) -> None:
    """A picture of each chart as it stands on the page; the browser makes it."""
    rows = [
        f'<li>{panel.title}: <button type="button" data-save="png" data-chart="{panel.name}" '
        f'aria-label="PNG of {panel.title}">PNG</button> <button type="button" data-save="svg" '
        f'data-chart="{panel.name}" aria-label="SVG of {panel.title}">SVG</button></li>'
        for panel in panels
    ]
    st.html(f'<ul class="ll-save">{"".join(rows)}</ul>')


def listen_for_saves() -> None:
    st.html(f"<script>{_script()}</script>", unsafe_allow_javascript=True)


@cache
def _script() -> str:
    return (Path(__file__).parent / "save.js").read_text(encoding="utf-8")
