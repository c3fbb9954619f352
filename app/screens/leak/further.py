"""The panels below the grid of the Leak screen: the cliff, the ladder and the blind test, one at a time."""

from __future__ import annotations

import streamlit as st

from app.screens.leak import series
from app.screens.leak.blind_test import panel as blind_test
from app.screens.leak.cliff import panel as cliff_panel
from app.screens.leak.ladder import panel as ladder_panel
from app.screens.leak.requests import STATE
from app.session import session
from app.texts import attack_series as series_texts
from engine.errors import LeakLensError

PANELS = {"cliff": cliff_panel.panel, "ladder": ladder_panel.panel, "test": blind_test.panel}


def panels() -> None:
    """Draw the chosen panel. The others do no work."""
    chosen = str(session.recall("leak-panel", "cliff"))
    st.segmented_control(
        series_texts.MORE, list(PANELS), format_func=series_texts.PANELS.__getitem__, required=True,
        **session.bind("leak-more", chosen, lambda name: session.remember("leak-panel", name)),
    )  # fmt: skip
    try:
        PANELS[chosen](STATE.current())
    except LeakLensError as error:
        series.problem(str(error))
