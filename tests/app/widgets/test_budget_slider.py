"""What the browser receives of a budget slider, and what a release does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from app.widgets import budget_slider
from app.widgets.budget_slider import SliderHead, SliderStop, slider_json

HEAD = SliderHead("Budget ε", "Budget ε of side A")
STOPS = (
    SliderStop("0", "off"),
    SliderStop("2", "6.08", "! weak promise", "weak"),
    SliderStop("inf", "1", reason="No."),
)


def test_the_browser_receives_every_position() -> None:
    data = slider_json(HEAD, STOPS, "2")
    assert data["at"] == 1 and [stop["tick"] for stop in data["stops"]] == ["off", "6.08", "1"]
    assert data["stops"][2]["reason"] == "No."


@pytest.mark.parametrize(("released", "chosen"), [("0", ["0"]), ("inf", []), ("7", []), (None, [])])
def test_only_an_offered_position_is_chosen(
    monkeypatch: pytest.MonkeyPatch, released: str | None, chosen: list[str]
) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(budget_slider, "_component", lambda **arguments: drawn.update(arguments))
    monkeypatch.setattr(st, "session_state", {"slider": SimpleNamespace(chosen=released)})
    keys: list[str] = []
    budget_slider.draw("slider", HEAD, STOPS, "2", keys.append)
    drawn["on_chosen_change"]()
    assert keys == chosen
