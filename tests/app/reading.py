"""Reads the text of a page, and presses its buttons."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app.session.screens import SCREENS


def text(page: AppTest) -> str:
    """All HTML of st.html, in the order of the page."""
    return "\n".join(str(element.value) for element in page.html)


def lines(page: AppTest) -> dict[str, str]:
    """The text of every run on the page by its id, in the order of the page."""
    texts = {}
    for article in re.findall(r"<article.*?</article>", text(page), re.DOTALL):
        without_tags = " ".join(re.sub("<[^>]*>", " ", article).split())
        run_id = re.search(r"\brun ([0-9a-f]{12})\b", without_tags)
        if run_id:
            texts[run_id[1]] = without_tags
    return texts


def open_screen(page: AppTest, name: str) -> AppTest:
    """Choose the screen that the next run shows; the first one is at the root of the address."""
    page._page_hash = calc_hash("" if name == SCREENS[0].name else name)
    return page


def press(page: AppTest, action: str, run: str = "") -> AppTest:
    page.button(key=f"{action}:{run}" if run else action).click()
    return page.run()


def actions_of(page: AppTest, run: str) -> set[str]:
    """The actions that a run has buttons for."""
    keys = [str(button.key) for button in page.button]
    return {key.partition(":")[0] for key in keys if key.endswith(f":{run}")}
