"""The state of one visitor between two passes over a page: settings and the values of widgets."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import streamlit as st

from app.session import cookie
from app.session.limits import class_mode
from engine.jobs.requests import MACHINE


def visitor() -> str:
    """The id of this visitor: from the cookie of the browser, or of the tab if the browser keeps no cookie."""
    return cookie.visitor_id(st.context.cookies.get(cookie.COOKIE)) or tab()


def owner() -> str:
    """The owner of what this visitor uploads: at home it is the machine, which never leaves."""
    return visitor() if class_mode() else MACHINE


def tab() -> str:
    return str(st.session_state.setdefault("tab", secrets.token_hex(4)))


def dark() -> bool:
    return st.context.theme.type == "dark"


def bind(key: str, value: Any, on_change: Callable[[Any], None]) -> dict[str, Any]:
    """The arguments that bind a widget to a value: it shows the value and calls `on_change` with a new one."""
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: on_change(st.session_state[key])}


def remember(name: str, value: Any) -> None:
    st.session_state[name] = value


def recall(name: str, default: Any = None) -> Any:
    return st.session_state.get(name, default)


def rerun() -> None:
    """Draw the whole page again after a click, even if the button is in a fragment."""
    remember("acted", True)
    st.rerun()


def now() -> float:
    return time.monotonic()
