"""The settings of the Runs screen: which runs it shows, and in what order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from app.screens.runs.listing import STATUSES
from app.session.screen_settings import ScreenSettings
from app.session.screen_state import ScreenState
from app.texts import runs as run_texts


class RunsSettings(ScreenSettings):
    """All settings of the screen."""

    screen: ClassVar[str] = "runs"
    later: ClassVar[tuple[str, ...]] = ("states", "find", "sort")  # a short address while nothing is chosen

    rules: ClassVar[Mapping[str, str]] = {"find": "must have at most 200 characters"}

    states: tuple[str, ...] = Field((), title=run_texts.STATE)  # empty: all
    find: str = Field("", max_length=200, title=run_texts.FIND)
    sort: Literal["newest", "name", "accuracy", "size"] = Field("newest", title=run_texts.SORT)

    @classmethod
    def word(cls, name: str, text: str) -> str:
        return text if name == "states" and text in STATUSES else ""


STATE = ScreenState(RunsSettings)
