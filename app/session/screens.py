"""The screens by name. Screens link to each other by name, so that no screen imports another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from app.texts import product


@dataclass(frozen=True)
class Screen:
    """One entry of the navigation. Streamlit runs its page, a file below `app/`; nothing imports it."""

    name: str  # its path in the address; the first screen has the root
    title: str
    page: str


SCREENS = (
    Screen("leak", product.LEAK, "screens/leak/page.py"),
    Screen("lab", product.LAB, "screens/lab/page.py"),
    Screen("tradeoff", product.TRADEOFF, "screens/tradeoff/page.py"),
    Screen("runs", product.RUNS, "screens/runs/page.py"),
    Screen("machine", product.MACHINE, "screens/machine/page.py"),
)


def navigation() -> list[st.Page]:
    """The pages in the order of the menu. The first is the default page, at the root of the address."""
    first = SCREENS[0].name
    return [
        st.Page(screen.page, title=screen.title, url_path=screen.name, default=screen.name == first)
        for screen in SCREENS
    ]


def go_to(name: str, params: dict[str, str]) -> NoReturn:
    """Open another screen with these parameters in its address."""
    page = next(screen.page for screen in SCREENS if screen.name == name)
    st.switch_page(page, query_params=params)
