"""A panel on the page: its figure, its words for those who cannot see it, and its picture to take away."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts import partition as who_holds_what
from app.charts.base import Panel, PanelChoice, PanelInfo, Track
from app.session import session

CONFIG = {"displaylogo": False, "displayModeBar": False, "scrollZoom": False}


def show(panel: Panel[Any], tracks: Sequence[Track]) -> bool:
    """The panel, where any of these runs has said something it listens to."""
    found = panel.collected(tracks)
    if not found:
        return False
    st.html(f'<h2 class="ll-title">{panel.title}</h2>')
    _draw(panel, found)
    return True


def _draw(panel: Panel[Any], found: Sequence[PanelInfo[Any]]) -> None:
    st.plotly_chart(
        panel.draw(found, session.dark()),
        key=f"chart-{panel.name}",
        theme=None,
        config=CONFIG,
        alt=panel.describe(found),
    )


# --- panels that ask which part of a run is looked at ------------------------------------------------------


def show_asking(panels: Sequence[Panel[Any]], tracks: Sequence[Track]) -> list[Panel[Any]]:
    """Those of the panels that have something to show; what is chosen on one redraws them all, and nothing else."""
    there = [(panel, found) for panel in panels if (found := panel.collected(tracks))]
    if there:
        st.fragment(_asking)(there)
    return [panel for panel, _ in there]


def _asking(there: Sequence[tuple[Panel[Any], Sequence[PanelInfo[Any]]]]) -> None:
    for panel, found in there:
        st.html(f'<h2 class="ll-title">{panel.title}</h2>')
        _asked(panel, found[0])


def _asked(panel: Panel[Any], one: PanelInfo[Any]) -> None:
    """The sentence stands above the controls, and is written when they have been read."""
    assert panel.choices
    above = st.container()
    choices = panel.choices.choices(one.info)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        answers = {choice.name: _choice(panel, choice) for choice in choices}
    chosen = PanelInfo(one.track, panel.choices.choose(one.info, answers))
    said = html.escape(panel.choices.describe(chosen.info))
    above.html(f'<p class="ll-said" role="status" aria-live="polite">{said}</p>')
    _draw(panel, [chosen])


def _choice(panel: Panel[Any], choice: PanelChoice) -> str:
    """What a visitor chose, while it is there; else what the panel offers. Nobody is asked where there is no choice.

    A widget is named by what was offered when it came: while a run grows, what we offer next is never taken for a
    visitor's choice, and a visitor's hand stays on the widget that it moves.
    """
    name = f"{panel.name}:{choice.name}"
    kept, offered = session.recall(f"chosen:{name}") or (None, "")
    if kept not in choice.options:
        kept, offered = choice.chosen, choice.chosen
    if len(choice.options) < 2:
        return str(kept)

    def deed(answer: str) -> None:
        following = choice.scrubbed and answer == choice.options[-1]
        session.remember(f"chosen:{name}", None if following else (answer, offered))

    tied = session.tie(f"choose:{name}:{offered}", kept, deed)
    if choice.scrubbed:
        return str(st.select_slider(choice.label, choice.options, width=280, **tied))
    return str(st.selectbox(choice.label, choice.options, width=280, **tied))


def partition(counts: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    words = who_holds_what.describe(counts)
    drawn = who_holds_what.draw(counts, session.dark(), names)
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
