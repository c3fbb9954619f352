"""Navigation, and nothing else: `streamlit run app/main.py` begins here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [] if (root := str(Path(__file__).resolve().parent.parent)) in sys.path else [root]

import streamlit as st  # noqa: E402  (after the root is on the path)

from app import theme, words  # noqa: E402

st.set_page_config(page_title=words.PRODUCT, layout="wide", initial_sidebar_state="collapsed")
st.html(theme.CSS)
st.navigation(
    [
        st.Page("screens/leak.py", title=words.LEAK, default=True),
        st.Page("screens/lab.py", title=words.LAB),
        st.Page("screens/tradeoff.py", title=words.TRADEOFF),
        st.Page("screens/runs.py", title=words.RUNS),
        st.Page("screens/machine.py", title=words.MACHINE),
    ],
    position="top",
).run()
