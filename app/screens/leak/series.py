"""What the panels below the grid share: each runs, follows and cancels a series of attacks.

A series uses the same attack ids as the grid, so an attack runs once for both.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from app.batch import attack_cells, follow
from app.screens.leak import requests as leak_requests
from app.screens.leak.settings import LeakSettings
from app.session import messages, session
from app.texts import attack_series as series_texts
from engine.errors import LeakLensError
from engine.jobs.batches import BatchKind
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.specs import attack_grid
from engine.specs.attack_grid import RequestedAttack

POLL_S = 0.5
KINDS: Mapping[str, BatchKind] = {"cliff": "cliff", "ladder": "ladder", "test": "blind test"}  # by panel


def attacks(leak: LeakSettings) -> tuple[str, ...]:
    """Return the chosen attacks that fit the model, judged by the baseline run."""
    baseline = leak.with_(against=(attack_grid.NONE,), eyes="server")
    requests = attack_cells.with_refusals(baseline.grid.requests())
    return tuple(request.attack for request in requests if request.spec)


# --- running and cancelling --------------------------------------------------------------------------------


def submit(name: str, requests: Sequence[RequestedAttack]) -> None:
    """Request the attacks of a series as one batch, in the given order."""
    session.remember(f"{name}-trouble", "")
    try:
        leak_requests.request(KINDS[name], requests, series_texts.BUSY)
    except LeakLensError as error:
        session.remember(f"{name}-trouble", str(error))
    session.rerun()


def cancel(name: str, requests: Sequence[RequestedAttack]) -> None:
    """Cancel the attacks of this series for this visitor. Those that others requested continue."""
    try:
        session.remember(f"{name}-trouble", leak_requests.stop(KINDS[name], requests))
    except LeakLensError as error:
        session.remember(f"{name}-trouble", str(error))
    session.rerun()


# --- following ---------------------------------------------------------------------------------------------


def draw_until_done(draw: Callable[[], Sequence[AttackCell]], moving: bool) -> None:
    """Draw a panel. While an attack runs, draw it again at each poll, and the whole page once at the end."""
    if not moving:
        draw()
        return

    def draw_once() -> None:
        if not any(cell.moving for cell in draw()):
            session.rerun()

    st.fragment(messages.guarded(draw_once), run_every=POLL_S)()


def progress_bar(name: str, requests: Sequence[RequestedAttack], label: Callable[[int, int], str]) -> None:
    """Show the progress of the series, and the buttons that run and cancel it."""
    trouble = str(session.recall(f"{name}-trouble", ""))
    if trouble:
        problem(trouble)
    runs = [request.id for request in requests if request.spec]
    follow.bar(
        name, follow.read(runs, list(attack_cells.stored()), KINDS[name]), label, "attacks",
        partial(submit, name, tuple(requests)), partial(cancel, name, tuple(requests)),
    )  # fmt: skip


def last_guess(cell: AttackCell) -> str:
    """Return the newest guess of the first picture as PNG in base64, or an empty string."""
    if not cell.path:
        return ""
    shown = attack_summary.guess_of(cell.path[-1], 0)
    return shown[0] if shown else ""


# --- text on the page --------------------------------------------------------------------------------------


def title(text: str) -> None:
    st.html(f'<h2 class="ll-title">{html.escape(text)}</h2>')


def announce(text: str) -> None:
    """Show a result. A screen reader reads it aloud when it changes."""
    st.html(f'<p class="ll-lead" role="status" aria-live="polite">{html.escape(text)}</p>')


def explain(text: str) -> None:
    st.html(f'<p class="ll-why">{html.escape(text)}</p>')


def details(title: str, text: str) -> None:
    """Show a text that a visitor opens."""
    st.html(f'<details class="ll-why"><summary>{html.escape(title)}</summary>{html.escape(text)}</details>')


def problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def failures(cells: Sequence[AttackCell]) -> None:
    """Show each reason for a missing picture once."""
    reasons = [cell.problem for cell in cells if cell.problem and not cell.done]
    for reason in dict.fromkeys(reasons):
        problem(reason)
