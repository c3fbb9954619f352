"""The navigation of the dashboard, and the entry point of `streamlit run app/main.py`."""

from __future__ import annotations

import sys
from pathlib import Path

root = str(Path(__file__).resolve().parent.parent)
if root not in sys.path:
    sys.path.insert(0, root)

import streamlit as st  # noqa: E402  (after the root is on the path)

from app import theme  # noqa: E402
from app.session.screens import navigation  # noqa: E402
from app.texts import product  # noqa: E402

st.set_page_config(page_title=product.PRODUCT, layout="wide", initial_sidebar_state="collapsed")
st.html(theme.CSS)
st.navigation(navigation(), position="top").run()
