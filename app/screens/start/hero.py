"""The slider with its pictures: of the stored sweep, or of a photo while the attacks on it run."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.screens.start import requests, table, texts
from app.screens.start.requests import STATE
from app.session import messages, services, session
from app.widgets import stop_slider
from engine.examples.start import StartExample
from engine.jobs.thumbnails import thumbnails
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents

POLL_S = 0.3


def draw(example: StartExample) -> None:
    """Draw the slider. While attacks on a photo run, draw it again at each poll."""
    start = STATE.current()
    if not start.own:
        sheet = table.portrait_sheet(example, start)
        if not sheet.upload:
            messages.explain(texts.NOTHING_STORED.format(who=texts.who(start.eyes)))
            return
        stop_slider.draw(sheet, requests.choose)
        return
    if _under_way(_own_cells(example)):
        st.fragment(messages.guarded(_own), run_every=POLL_S)(example, True)
    else:
        _own(example, False)


def _own(example: StartExample, was_moving: bool) -> None:
    """Draw the pictures of a photo that there are so far."""
    requests.request_wanted()
    start = STATE.current()
    cells = _own_cells(example)
    original = thumbnails(_dataset(example), [f"own-{start.own}-0"], services.store().home)[0].png if cells else ""
    sheet = table.own_sheet(example, start, cells or [None] * len(example.stops), original)
    stop_slider.draw(sheet, requests.choose)
    if session.recall(requests.WANTED):
        messages.show("note", texts.LOADING)
    if was_moving:
        STATE.write_link()  # a pass of the fragment does not come to the end of the page
    if was_moving and not _under_way(cells):
        session.rerun()
    if not was_moving and not any(cell.status for cell in cells):
        st.button(texts.ATTACK, key="start-attack", on_click=requests.want, args=(start.own,))


def _dataset(example: StartExample) -> str:
    dataset = example.stops[0].run.spec["dataset"]
    return str(dataset if isinstance(dataset, str) else dataset["name"])


def _under_way(cells: Sequence[AttackCell]) -> bool:
    """Whether a picture can still change."""
    return bool(session.recall(requests.WANTED)) or any(cell.moving for cell in cells)


def _own_cells(example: StartExample) -> list[AttackCell]:
    """The attacks on the photo, one for each stop; empty before the engine is loaded."""
    if not services.shared().ready():
        return []
    cells = []
    for request in requests.requests_of(STATE.current().own):
        stored = services.read(request.id)
        events = AttackEvents(stored[0].status, stored[1], stored[0].place) if stored else None
        cells.append(attack_summary.collect_cell(request, events))
    return cells
