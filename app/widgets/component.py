"""A component of the browser whose style and script are files of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

FOLDER = Path(__file__).parent


def component(name: str, html: str, css: str, js: str) -> Callable[..., Any]:
    """Register a component. `css` and `js` are names of files."""
    style = (FOLDER / css).read_text(encoding="utf-8")
    script = (FOLDER / js).read_text(encoding="utf-8")
    return st.components.v2.component(name, html=html, css=style, js=script)
