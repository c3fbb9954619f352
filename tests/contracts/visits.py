"""A visit to the dashboard by its address, as a browser makes it."""

from __future__ import annotations

from collections.abc import Mapping

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.contracts.doors import PAGE, PATIENCE_S, Linked, lab, leak, tradeoff_screen


def visit(path: str, params: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Open a path with parameters: the path and the parameters that the address shows then."""
    page = AppTest.from_file(str(PAGE), default_timeout=PATIENCE_S)
    for name, value in params.items():
        page.query_params[name] = value
    if path != "/":
        page._page_hash = calc_hash(path.removeprefix("/"))  # Streamlit names a page by its path
    page.run()
    assert not page.exception, page.exception
    here = page._registered_pages[page._finished_page_script_hash]
    return f"/{here.get('url_pathname')}", {name: str(value) for name, value in page.query_params.items()}


def linked(path: str, params: Mapping[str, str]) -> Linked | None:
    """What the screen of this path reads from a link; None where it reads none."""
    readers = {"/": leak, "/lab": lab, "/tradeoff": tradeoff_screen}
    return readers[path](params) if path in readers else None
