"""The list *Details*: what is behind the three panels, one entry open at a time, named in the address."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.charts import classes, epsilon
from app.screens.try_it.details import entries, table, takeaway
from app.screens.try_it.details import texts as details_texts
from app.screens.try_it.settings import STATE, TrySettings
from app.screens.try_it.sides import TrySide
from app.session import run_settings, session
from engine.errors import LeakLensError
from engine.events import Smoothed

Entry = Callable[[], None]


def panel(sides: Sequence[TrySide]) -> None:
    """Draw the list, and the open entry. The others do no work."""
    settings = STATE.current()
    offered = _entries(sides, settings)
    opened = settings.closer if settings.closer in offered else None
    smoothed = next((side for side in sides if _smooths(side)), sides[0])
    titles = {**details_texts.ENTRIES, "inside": _inside_title(smoothed)}
    st.pills(
        details_texts.LIST, list(offered), format_func=titles.__getitem__,
        **session.bind("try-closer", opened, lambda name: STATE.choose(closer=name or "")),
    )  # fmt: skip
    if opened is None:
        return
    with st.container(key="try-details"):
        try:
            offered[opened]()
        except LeakLensError as error:
            st.html(f'<p class="ll-problem" role="alert">{html.escape(str(error))}</p>')


def _entries(sides: Sequence[TrySide], settings: TrySettings) -> dict[str, Entry]:
    """The entries that have something to show for these sides, in their order."""
    tracks = entries.tracks(sides, table.pinned(sides, settings))
    offered: dict[str, Entry] = {"privacy": partial(entries.privacy, sides, settings.eyes)}
    for panel in (epsilon.PANEL, classes.PANEL):
        if panel.collected(tracks):
            offered[panel.name] = partial(entries.chart, panel, tracks)
    if any(map(_smooths, sides)):
        offered["inside"] = partial(entries.inside, [side for side in sides if _smooths(side)])
    offered["partition"] = partial(entries.partition, sides)
    if any(side.runs for side in sides):
        offered["seeds"] = partial(entries.seeds, sides, settings.eyes)
    if settings.pins:
        offered["table"] = partial(table.draw, sides, settings)
    offered["take"] = partial(takeaway.draw, sides, tracks)
    return offered


def _smooths(side: TrySide) -> bool:
    """Whether the server of this side smooths the models, so that there is an inside to show."""
    return side.main is not None and any(isinstance(event, Smoothed) for event in side.main.events)


def _inside_title(side: TrySide) -> str:
    return details_texts.ENTRIES["inside"].format(title=run_settings.part_title("method", side.run["method"]))
