"""A series of attacks beside the grid: asked, followed and stopped as the grid is, and shared with it by their ids."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from app import leak_cells, leak_orders, leaks, notes, state, words, words_leak, words_leak_more
from app.leak_cells import Cell
from app.leaks import Asked, Leak
from engine.errors import LeakLensError

POLL_S = 0.5
ASKED_BEFORE = ("queued", "running", "finished", "stored")


def attacks(leak: Leak) -> tuple[str, ...]:
    """The chosen attacks that fit the model, as far as the undefended run tells."""
    control = replace(leak, against=(leaks.NONE,), eyes="server")
    return tuple(one.attack for one in leak_orders.fitted(leaks.cells(control)) if one.spec)


def steady(names: Sequence[str]) -> str:
    """The attack that stands for all: the one that knows the noise, else the first."""
    return "map" if "map" in names else names[0]


# --- asking and stopping -----------------------------------------------------------------------------------


def ask(name: str, asked: Sequence[Asked]) -> None:
    """Submit what nobody asked before, in the order given."""
    state.remember(f"{name}-began", None)
    state.remember(f"{name}-trouble", "")
    try:
        missing = [one for one in asked if one.spec and leak_orders.status(one.id) not in ASKED_BEFORE]
        if missing:
            leak_orders.within_caps([one.id for one in asked], len(missing), words_leak_more.BUSY)
        leak_orders.submit(missing)
    except LeakLensError as error:
        state.remember(f"{name}-trouble", str(error))
    state.kitchen().supervisor.wake()
    state.again()


def stop(name: str, asked: Sequence[Asked]) -> None:
    """Cancel what this series still waits for; what others watch goes on."""
    try:
        kept = leak_orders.stopped(asked)
        state.remember(f"{name}-trouble", words.shared(kept, "attacks") if kept else "")
    except LeakLensError as error:
        state.remember(f"{name}-trouble", str(error))
    state.again()


# --- following ---------------------------------------------------------------------------------------------


def followed(draw: Callable[[], Sequence[Cell]], moving: bool) -> None:
    """Draw; while something moves, again and again by itself, and the whole page once more at the end."""
    if not moving:
        draw()
        return

    def once() -> None:
        if not any(cell.moving for cell in draw()):
            state.again()

    st.fragment(notes.guarded(once), run_every=POLL_S)()


def bar(name: str, asked: Sequence[Asked], cells: Sequence[Cell], label: Callable[[int, int], str]) -> None:
    """How far the series is, and the button that begins or ends it."""
    if trouble := str(state.recall(f"{name}-trouble", "")):
        problem(trouble)
    moving = [cell for cell in cells if cell.moving]
    can = [cell for cell in cells if cell.id]
    missing = [cell for cell in can if cell.status not in ASKED_BEFORE]
    if not moving and not missing:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-bar"):
        if moving:
            there = [cell for cell in cells if cell.status]
            done = sum(not cell.moving for cell in there)
            text = words_leak.progress(done, len(there), left(name, cells))
            if stuck := state.kitchen().supervisor.trouble:
                text = f"{text} · {stuck}"
            st.progress(min(1.0, leak_cells.fractions(cells)), text)
            st.button(words_leak.CANCEL, key=f"{name}-cancel", on_click=stop, args=(name, tuple(asked)))
        else:
            text = label(len(missing), len(can))
            st.button(text, key=f"{name}-ask", type="primary", on_click=ask, args=(name, tuple(asked)))


def left(name: str, cells: Sequence[Cell]) -> float | None:
    """Seconds until all are done, as fast as it went since the click."""
    began, now, share = state.recall(f"{name}-began"), state.now(), leak_cells.fractions(cells)
    if not began:
        state.remember(f"{name}-began", (now, share))
        return None
    start, before = began
    return float((now - start) * (1 - share) / (share - before)) if share - before > 0.03 else None


def last(cell: Cell) -> str:
    """The newest guess of the first picture, as PNG; empty where there is none."""
    found = leak_cells.moment(cell.path[-1], 0) if cell.path else None
    return found[0] if found else ""


def title(text: str) -> None:
    st.html(f'<h2 class="ll-title">{html.escape(text)}</h2>')


def said(text: str) -> None:
    """A sentence of what happened, which a screen reader tells when it changes."""
    st.html(f'<p class="ll-said" role="status" aria-live="polite">{html.escape(text)}</p>')


def why(text: str) -> None:
    st.html(f'<p class="ll-why">{html.escape(text)}</p>')


def problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def failures(cells: Sequence[Cell]) -> None:
    """Why some have no picture, each reason once."""
    for text in dict.fromkeys(cell.problem for cell in cells if cell.problem and not cell.done):
        problem(text)
