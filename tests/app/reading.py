"""Reads a page as a visitor does, and presses its buttons."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app.session.screens import SCREENS


def text(page: AppTest) -> str:
    """Everything written by st.html, in the order of the page."""
    return "\n".join(str(one.value) for one in page.html)


def lines(page: AppTest) -> dict[str, str]:
    """The text of every run on the page, by its name, in the order of the page."""
    articles = re.findall(r"<article.*?</article>", text(page), re.DOTALL)
    plain = [" ".join(re.sub("<[^>]*>", " ", one).split()) for one in articles]
    return {name[1]: one for one in plain if (name := re.search(r"\brun ([0-9a-f]{12})\b", one))}


def open_screen(page: AppTest, name: str) -> AppTest:
    """Choose the screen that the next run shows; the first one is at the root of the address."""
    page._page_hash = calc_hash("" if name == SCREENS[0].name else name)
    return page


def press(page: AppTest, deed: str, run: str = "") -> AppTest:
    page.button(key=f"{deed}:{run}" if run else deed).click()
    return page.run()


def offered(page: AppTest, run: str) -> set[str]:
    keys = [str(one.key) for one in page.button]
    return {key.partition(":")[0] for key in keys if key.endswith(f":{run}")}
