"""What one visitor keeps between two passes over a page: settings, and what widgets hold."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app.session import owners, run_settings
from app.session.run_settings import Settings


def visitor() -> str:
    """The id of this visitor: their browser at their address, or this tab where the browser keeps no cookie."""
    return owners.visitor_id(st.context.ip_address, st.context.cookies.get(owners.COOKIE)) or tab()


def tab() -> str:
    return str(st.session_state.setdefault("tab", secrets.token_hex(4)))


def dark() -> bool:
    return st.context.theme.type == "dark"


def settings() -> Settings:
    """The question in the form."""
    found: Settings = st.session_state.setdefault("settings", {})
    return found


def bound(path: str, name: str = "") -> dict[str, Any]:
    """What ties a widget to a setting: its key, and what happens when it is changed."""
    key = f"w:{name or path}"
    st.session_state[key] = settings().get(path)
    return {"key": key, "on_change": _changed, "args": (path, key)}


def _changed(path: str, key: str) -> None:
    choose({path: st.session_state[key]})


def choose(changes: Mapping[str, Any]) -> None:
    """Other settings; a part that changes brings its own fields, and keeps those that both have."""
    now = {**settings(), **changes}
    remember("acted", True)  # the next pass is ours: its link is still the old one
    st.session_state.update(settings=run_settings.settled(now), trouble="", told=[])


def tie(key: str, value: Any, deed: Callable[[Any], None]) -> dict[str, Any]:
    """What ties a widget to a value kept elsewhere: it shows it, and hands over what a visitor makes of it."""
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: deed(st.session_state[key])}


def remember(name: str, value: Any) -> None:
    st.session_state[name] = value


def recall(name: str, usual: Any = None) -> Any:
    return st.session_state.get(name, usual)


def again() -> None:
    """At the end of what a click does: the whole page once more, wherever the button stands."""
    remember("acted", True)
    st.rerun()


def now() -> float:
    return time.monotonic()
