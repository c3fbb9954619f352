"""The control *Export*: what is on the page as one HTML file, and a grid of pictures as one PNG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.texts import product
from app.widgets.component import component

_png_button = component("leaklens_grid_png", '<button type="button"></button>\n', "export.css", "grid_png.js")


def show(path: str, grid: Mapping[str, Any] | None = None, foot: str = "") -> None:
    """Draw the control.

    `path` is the address of the exported page, `grid` the data of a grid of pictures. `foot` is printed below the grid:
    an ε needs its terms wherever it goes.
    """
    with st.popover(product.EXPORT, width="content"):
        st.link_button(product.EXPORT_PAGE, path, help=product.EXPORT_HELP, width="stretch")
        st.link_button(product.EXPORT_SLIDES, slides(path), help=product.EXPORT_SLIDES_HELP, width="stretch")
        if grid is not None:
            _png_button(key="export-png", data={"label": product.EXPORT_PNG, "grid": png_data(grid, foot)})


def slides(path: str) -> str:
    """The address of the same page, which opens as slides."""
    return f"{path}{'&' if '?' in path else '?'}style=slides"


def png_data(grid: Mapping[str, Any], foot: str) -> dict[str, Any]:
    """The data of a grid without the guesses before the last one, which the PNG does not show."""
    rows = []
    for row in grid["rows"]:
        cells = [{**cell, "frames": []} for cell in row["cells"]]
        rows.append({**row, "cells": cells})
    return {**grid, "rows": rows, "foot": foot}
