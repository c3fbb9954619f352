"""A panel on the page: its figure, its text for screen readers, and its picture to download."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts import partition as partition_chart
from app.charts.base import Panel, PanelChoice, PanelInfo, Track
from app.session import messages, session

CONFIG = {"displaylogo": False, "displayModeBar": False, "scrollZoom": False}


def show(panel: Panel[Any], tracks: Sequence[Track]) -> bool:
    """Show the panel. False if no run has events for it."""
    infos = panel.collected(tracks)
    if not infos:
        return False
    st.html(f'<h2 class="ll-title">{panel.title}</h2>')
    draw(panel, infos)
    return True


def draw(panel: Panel[Any], infos: Sequence[PanelInfo[Any]], height: int | None = None, name: str = "") -> None:
    """Draw a panel without its title, in its own height or another one.

    A second figure of the same panel on a page has a name of its own.
    """
    figure = panel.draw(infos, session.dark())
    if height is not None:
        figure.update_layout(height=height)
    st.plotly_chart(
        figure,
        key=f"chart-{name or panel.name}",
        theme=None,
        config=CONFIG,
        alt=panel.describe(infos),
    )


# --- panels with choices -----------------------------------------------------------------------------------


def show_with_choices(panels: Sequence[Panel[Any]], tracks: Sequence[Track]) -> list[Panel[Any]]:
    """Show the panels for which a run has events, and return them. A choice on one redraws these panels only."""
    shown = []
    for panel in panels:
        infos = panel.collected(tracks)
        if infos:
            shown.append((panel, infos[0]))
    if shown:
        st.fragment(_show_with_choices)(shown)
    return [panel for panel, _ in shown]


def _show_with_choices(shown: Sequence[tuple[Panel[Any], PanelInfo[Any]]]) -> None:
    for panel, info in shown:
        st.html(f'<h2 class="ll-title">{panel.title}</h2>')
        messages.show_stored(info.track.run, partial(_draw_chosen, panel, info))


def _draw_chosen(panel: Panel[Any], info: PanelInfo[Any]) -> None:
    """Draw what the visitor chose. The description is above the controls but depends on their values."""
    assert panel.choices
    above = st.container()
    choices = panel.choices.choices(info.info)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        answers = {choice.name: _choice(panel, choice) for choice in choices}
    chosen = PanelInfo(info.track, panel.choices.choose(info.info, answers))
    description = html.escape(panel.choices.describe(chosen.info))
    above.html(f'<p class="ll-lead" role="status" aria-live="polite">{description}</p>')
    draw(panel, [chosen])


def _choice(panel: Panel[Any], choice: PanelChoice) -> str:
    """The option that the visitor chose, if it still exists; else the default of the panel.

    With one option there is no widget. The key of a widget holds the default at its creation. While a run grows, a new
    default therefore makes a new widget and is not taken for a choice. A widget that the visitor moves keeps its key.
    """
    name = f"{panel.name}:{choice.name}"
    chosen, default = session.recall(f"chosen:{name}") or (None, "")
    if chosen not in choice.options:
        chosen = choice.chosen
        default = choice.chosen
    if len(choice.options) < 2:
        return str(chosen)

    def keep(answer: str) -> None:
        follows_run = choice.scrubbed and answer == choice.options[-1]  # the end of a slider follows the run
        session.remember(f"chosen:{name}", None if follows_run else (answer, default))

    binding = session.bind(f"choose:{name}:{default}", chosen, keep)
    if choice.scrubbed:
        return str(st.select_slider(choice.label, choice.options, width=280, **binding))
    return str(st.selectbox(choice.label, choice.options, width=280, **binding))


def partition(counts: Sequence[Sequence[int]], names: Sequence[str], name: str = "partition") -> None:
    """Show how many records of each class each client has. `name` is that of the chart on the page."""
    description = partition_chart.describe(counts)
    figure = partition_chart.draw(counts, session.dark(), names)
    st.plotly_chart(figure, key=f"chart-{name}", theme=None, config=CONFIG, alt=description)
    st.caption(description)


def save_buttons(titles: Mapping[str, str]) -> None:
    """Buttons that save each chart as it is on the page: its picture or its data. The browser makes both.

    `titles` has the title of each chart by its name, which ends its key on the page.
    """
    rows = []
    for name, title in titles.items():
        buttons = " ".join(_save_button(name, title, kind) for kind in ("png", "svg", "csv"))
        rows.append(f"<li>{title}: {buttons}</li>")
    st.html(f'<ul class="ll-save">{"".join(rows)}</ul>')


def _save_button(name: str, title: str, kind: str) -> str:
    attributes = f'data-save="{kind}" data-chart="{name}" aria-label="{kind.upper()} of {title}"'
    return f'<button type="button" {attributes}>{kind.upper()}</button>'


def listen_for_saves() -> None:
    """Add the script that makes the save buttons work."""
    st.html(f"<script>{_script()}</script>", unsafe_allow_javascript=True)


@cache
def _script() -> str:
    return (Path(__file__).parent / "save.js").read_text(encoding="utf-8")
