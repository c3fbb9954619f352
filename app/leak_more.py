"""Under the grid of the Leak screen: three ways to look further, one at a time."""

from __future__ import annotations

import streamlit as st

from app import leak_cliff, leak_ladder, leak_orders, leak_series, leak_test, state, words_leak_more
from engine.errors import LeakLensError

PANELS = {"cliff": leak_cliff.panel, "ladder": leak_ladder.panel, "test": leak_test.panel}


def panels() -> None:
    """Only the chosen one is laid out, so that the others cost nothing."""
    chosen = str(state.recall("leak-panel", "cliff"))
    st.segmented_control(
        words_leak_more.MORE, list(PANELS), format_func=words_leak_more.PANELS.__getitem__, required=True,
        **state.tie("leak-more", chosen, lambda name: state.remember("leak-panel", name)),
    )  # fmt: skip
    try:
        PANELS[chosen](leak_orders.leak())
    except LeakLensError as error:
        leak_series.problem(str(error))
