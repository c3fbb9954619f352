"""The list *Look closer* of the Leak screen: what is behind the grid, one entry open at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.batch import attack_cells
from app.screens.leak import results as leak_results
from app.screens.leak import series
from app.screens.leak.blind_test import panel as blind_test
from app.screens.leak.cliff import panel as cliff_panel
from app.screens.leak.ladder import panel as ladder_panel
from app.screens.leak.numbers import panel as numbers_panel
from app.screens.leak.requests import STATE
from app.screens.leak.results import GridView
from app.screens.leak.settings import LeakSettings
from app.screens.leak.whole import panel as whole_upload
from app.session import session
from app.texts import attack_series as series_texts
from app.widgets import chart as chart_widget
from engine.errors import LeakLensError
from engine.results.attack_summary import AttackCell

SERIES: dict[str, Callable[[LeakSettings], None]] = {
    "cliff": cliff_panel.panel,
    "ladder": ladder_panel.panel,
    "test": blind_test.panel,
}

ARRIVED = "leak-arrived"  # of the session: whether a link has opened an entry that is not in view yet
# A link that names an entry asks its question: the visitor must not search for the answer below the grid.
SHOW = """
<style>.st-key-leak-closer { scroll-margin-top: 4rem; }</style>
<script>document.querySelector('.st-key-leak-closer')?.scrollIntoView();</script>
"""


def panel(view: GridView) -> None:
    """Draw the list, and the open entry. The others do no work."""
    leak = STATE.current()
    entries = _entries(leak, view, attack_cells.read_cells(view.requests))
    opened = leak.closer if leak.closer in entries else None
    st.pills(
        series_texts.MORE, list(entries), format_func=series_texts.PANELS.__getitem__,
        **session.bind("leak-closer", opened, lambda name: STATE.choose(closer=name or "")),
    )  # fmt: skip
    if opened is None:
        return
    chart_widget.listen_for_saves()
    try:
        entries[opened]()
    except LeakLensError as error:
        series.problem(str(error))
    if session.recall(ARRIVED):
        session.remember(ARRIVED, False)
        st.html(SHOW, unsafe_allow_javascript=True)


def _entries(leak: LeakSettings, view: GridView, cells: Sequence[AttackCell]) -> dict[str, Callable[[], None]]:
    """Return the entries that have something to show for these settings, in their order."""
    entries: dict[str, Callable[[], None]] = {name: partial(draw, leak) for name, draw in SERIES.items()}
    if any(cell.done for cell in cells):
        entries["scores"] = partial(numbers_panel.scores, view, cells)
    if numbers_panel.curves_of(view, cells, leak_results.shown_picture()):
        entries["curves"] = partial(numbers_panel.curves, view, cells)
    if any(cell.done and cell.ordinary for cell in cells):
        entries["upload"] = partial(whole_upload.panel, view.attacks, view.titles, cells)
    entries["promises"] = partial(numbers_panel.promises, view, cells)
    entries["attacks"] = partial(numbers_panel.attacks, view, cells)
    return entries
