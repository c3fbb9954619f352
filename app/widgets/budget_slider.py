"""The budget slider: its positions with everything that they say, drawn and redrawn in the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.texts import budget as budget_texts
from app.widgets.component import component

_component = component("leaklens_budget", '<div class="budget"></div>\n', "budget_slider.css", "budget_slider.js")


@dataclass(frozen=True)
class SliderStop:
    """One position. The browser returns its key when it is chosen."""

    key: str
    tick: str
    size: str = ""  # the size of the promise in words
    side: str = ""  # its colour: private, ink, weak or leaking
    terms: str = ""
    lines: tuple[str, ...] = ()
    reason: str = ""  # why it cannot be chosen

    def json(self) -> dict[str, Any]:
        return {
            "key": self.key, "tick": self.tick, "size": self.size, "side": self.side, "terms": self.terms,
            "lines": list(self.lines), "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True)
class SliderHead:
    """What a slider is called: on the page, for a screen reader, and at its ends."""

    title: str
    label: str
    less: str = budget_texts.LESS
    more: str = budget_texts.MORE


def draw(
    key: str, head: SliderHead, stops: Sequence[SliderStop], chosen: str, on_choose: Callable[[str], None]
) -> None:
    """Draw the slider at the chosen position. `on_choose` receives the key of the position where it is released."""

    def released() -> None:
        choice = getattr(st.session_state[key], "chosen", None)
        if any(stop.key == choice and not stop.reason for stop in stops):
            on_choose(str(choice))

    _component(key=key, data=slider_json(head, stops, chosen), on_chosen_change=released)


def slider_json(head: SliderHead, stops: Sequence[SliderStop], chosen: str) -> dict[str, Any]:
    """Return everything that the browser draws, as JSON."""
    keys = [stop.key for stop in stops]
    return {
        "title": head.title,
        "label": head.label,
        "stops": [stop.json() for stop in stops],
        "at": keys.index(chosen),
        "ends": {"less": head.less, "more": head.more},
    }
