"""The screens by name. Screens link to each other by name, so that no screen imports another."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import streamlit as st

from app.session import messages
from app.texts import product

if TYPE_CHECKING:
    from app.session.screen_settings import ScreenSettings


@dataclass(frozen=True)
class Screen:
    """One screen. Its page and its settings are `module:name`, imported on first use: the registry loads no torch."""

    name: str  # its path in the address; the first screen has the root
    title: str
    page: str  # the function that draws it
    settings: str = ""  # the class of its settings, if it has any
    menu: Literal["bar", "more", ""] = "bar"  # where the menu names it; Start is the name of the product

    def draw(self) -> None:
        messages.guarded(_imported(self.page))()

    def streamlit_page(self) -> st.Page:
        default = self.name == SCREENS[0].name
        return st.Page(self.draw, title=self.title, url_path=self.name, default=default)


SCREENS = (
    Screen("start", product.START, "app.screens.start.page:page", "app.screens.start.settings:StartSettings", menu=""),
    Screen("leak", product.LEAK, "app.screens.leak.page:page", "app.screens.leak.settings:LeakSettings"),
    Screen("try", product.TRY, "app.screens.try_it.page:page", "app.screens.try_it.settings:TrySettings"),
    Screen(
        "tradeoff", product.TRADEOFF, "app.screens.tradeoff.page:page", "app.screens.tradeoff.settings:TradeoffSettings"
    ),
    Screen("runs", product.RUNS, "app.screens.runs.page:runs", "app.screens.runs.settings:RunsSettings", menu="more"),
    Screen("machine", product.MACHINE_TAB, "app.screens.runs.page:machine", menu=""),  # the other tab of Runs
    Screen("lab", product.TRY, "app.screens.try_it.page:from_lab", menu=""),  # an old address
)


def screen(name: str) -> Screen:
    return next(screen for screen in SCREENS if screen.name == name)


def settings_class(name: str) -> type[ScreenSettings]:
    """The class of a screen's settings."""
    declared: type[ScreenSettings] = _imported(screen(name).settings)
    return declared


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def navigation() -> list[st.Page]:
    """The pages in the order of the menu. The first is the default page, at the root of the address."""
    return [screen.streamlit_page() for screen in SCREENS]


def go_to(name: str, params: Mapping[str, str]) -> NoReturn:
    """Open another screen with these parameters in its address."""
    st.switch_page(screen(name).streamlit_page(), query_params=dict(params))
