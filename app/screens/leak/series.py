"""A series of attacks beside the grid: asked, followed and stopped as the grid is, and shared with it by their ids."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from app.screens.leak import requests as leak_requests
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import messages, services, session
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from app.texts import states
from engine.errors import LeakLensError
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

POLL_S = 0.5
ASKED_BEFORE = ("queued", "running", "finished", "stored")


def attacks(leak: LeakSettings) -> tuple[str, ...]:
    """The chosen attacks that fit the model, as far as the undefended run tells."""
    control = replace(leak, against=(attack_grid.NONE,), eyes="server")
    return tuple(one.attack for one in leak_requests.fitted(leak_settings.cells(control)) if one.spec)


def steady(names: Sequence[str]) -> str:
    """The attack that stands for all: the one that knows the noise, else the first."""
    return "map" if "map" in names else names[0]


# --- asking and stopping -----------------------------------------------------------------------------------


def ask(name: str, asked: Sequence[RequestedAttack]) -> None:
    """Submit what nobody asked before, in the order given."""
    session.remember(f"{name}-began", None)
    session.remember(f"{name}-trouble", "")
    try:
        missing = [one for one in asked if one.spec and leak_requests.status(one.id) not in ASKED_BEFORE]
        if missing:
            leak_requests.within_caps([one.id for one in asked], len(missing), series_texts.BUSY)
        leak_requests.submit(missing)
    except LeakLensError as error:
        session.remember(f"{name}-trouble", str(error))
    services.shared().supervisor.wake()
    session.again()


def stop(name: str, asked: Sequence[RequestedAttack]) -> None:
    """Cancel what this series still waits for; what others watch goes on."""
    try:
        kept = leak_requests.stopped(asked)
        session.remember(f"{name}-trouble", states.shared(kept, "attacks") if kept else "")
    except LeakLensError as error:
        session.remember(f"{name}-trouble", str(error))
    session.again()


# --- following ---------------------------------------------------------------------------------------------


def followed(draw: Callable[[], Sequence[AttackCell]], moving: bool) -> None:
    """Draw; while something moves, again and again by itself, and the whole page once more at the end."""
    if not moving:
        draw()
        return

    def once() -> None:
        if not any(cell.moving for cell in draw()):
            session.again()

    st.fragment(messages.guarded(once), run_every=POLL_S)()


def bar(
    name: str, asked: Sequence[RequestedAttack], cells: Sequence[AttackCell], label: Callable[[int, int], str]
) -> None:
    """How far the series is, and the button that begins or ends it."""
    if trouble := str(session.recall(f"{name}-trouble", "")):
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
            text = attack_texts.progress(done, len(there), left(name, cells))
            if stuck := services.shared().supervisor.trouble:
                text = f"{text} · {stuck}"
            st.progress(min(1.0, attack_summary.fractions(cells)), text)
            st.button(attack_texts.CANCEL, key=f"{name}-cancel", on_click=stop, args=(name, tuple(asked)))
        else:
            text = label(len(missing), len(can))
            st.button(text, key=f"{name}-ask", type="primary", on_click=ask, args=(name, tuple(asked)))


def left(name: str, cells: Sequence[AttackCell]) -> float | None:
    """Seconds until all are done, as fast as it went since the click."""
    began, now, share = session.recall(f"{name}-began"), session.now(), attack_summary.fractions(cells)
    if not began:
        session.remember(f"{name}-began", (now, share))
        return None
    start, before = began
    return float((now - start) * (1 - share) / (share - before)) if share - before > 0.03 else None


def last(cell: AttackCell) -> str:
    """The newest guess of the first picture, as PNG; empty where there is none."""
    found = attack_summary.moment(cell.path[-1], 0) if cell.path else None
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


def failures(cells: Sequence[AttackCell]) -> None:
    """Why some have no picture, each reason once."""
    for text in dict.fromkeys(cell.problem for cell in cells if cell.problem and not cell.done):
        problem(text)
