"""The address of a page. A visit reads it into settings; every change of the settings rewrites it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn
from urllib.parse import urlencode, urlsplit

import streamlit as st

from app.session import screens, session


def _base() -> str:
    return (st.context.url or "").partition("?")[0]


def offers_camera() -> bool:
    """Whether a browser offers its camera to this page: only over https, and on the computer of the server."""
    address = urlsplit(_base())
    return address.scheme == "https" or address.hostname in ("localhost", "127.0.0.1", "::1")


def params() -> dict[str, str]:
    """The parameters that are in the address now."""
    return {name: str(value) for name, value in st.query_params.items()}


def changed_link(screen: str) -> dict[str, str] | None:
    """The link of a screen if the screen did not write it: at a first visit, and after going back."""
    linked = params() or session.recall(f"waiting:{screen}", {})
    session.remember(f"waiting:{screen}", {})
    seen = session.recall(f"seen:{screen}")
    if seen is not None and (session.recall("acted") or not linked or linked == seen):
        return None
    session.remember(f"seen:{screen}", linked)
    return linked


def keep_link(screen: str) -> None:
    """Keep the link of a screen that cannot read it yet: a visitor may leave, and come back to a loaded engine."""
    if params():
        session.remember(f"waiting:{screen}", params())


def write_screen_link(screen: str, link: Mapping[str, str]) -> None:
    """Write everything that a screen shows into its address."""
    if params() != link:
        st.query_params.from_dict(dict(link))
    session.remember(f"seen:{screen}", dict(link))
    session.remember("acted", False)


def open_screen(screen: str, link: Mapping[str, str]) -> NoReturn:
    """Open another screen. It reads this link, even if a setting changed in the same pass."""
    st.session_state.update({"acted": False, f"seen:{screen}": None})
    screens.go_to(screen, dict(link))


def export_path(kind: str, id: str) -> str:
    """The address of the exported page of a run, an attack, a batch or an example."""
    return f"/export/{kind}/{id}.html"


def export_list_path(kind: str, ids: Sequence[str], **params: str) -> str:
    """The address of the exported page of several attacks (`grid`) or runs (`sweep`), stored or live."""
    return f"/export/{kind}.html?{urlencode({'ids': ','.join(ids), **params}, safe=',')}"


def address_of(link: Mapping[str, str]) -> str:
    """The address of this page with these parameters."""
    return f"{_base()}?{urlencode(link)}"


def current_address() -> str:
    """The address of this page with the parameters that are in it now."""
    return f"{_base()}?{urlencode(st.query_params.to_dict())}"
