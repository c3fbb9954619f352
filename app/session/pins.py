"""The runs that a visitor pinned to compare them. Try has them in its table and in its address."""

from __future__ import annotations

from typing import Any

from app.session import screens, session
from app.session.screen_state import ScreenState

SCREEN = "try"
MOST = 8


def pinned() -> tuple[str, ...]:
    """The ids of the pinned runs."""
    settings = session.recall(SCREEN)
    return tuple(settings.pins) if settings else ()


def pin(run: str) -> None:
    _choose((*pinned(), run))


def unpin(run: str) -> None:
    if run in pinned():
        _choose(tuple(each for each in pinned() if each != run))


def _choose(runs: tuple[str, ...]) -> None:
    state: ScreenState[Any] = ScreenState(screens.settings_class(SCREEN))
    state.choose(pins=tuple(dict.fromkeys(runs))[-MOST:])
