"""Links from the time when Leak, and before it the Lab, which Try replaced, was the first page."""

from __future__ import annotations

from collections.abc import Mapping

from app.session import screens

OF_START = "stop"  # every address that Start writes has it


def screen_of(params: Mapping[str, str]) -> str:
    """The screen that an address without a path means today; empty for Start."""
    if not params or OF_START in params:
        return ""
    of_leak = screens.settings_class("leak").own_fields()
    return "leak" if set(params) & set(of_leak) else "lab"
