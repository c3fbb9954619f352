"""What the panels below the grid share: each runs, follows and cancels a series of attacks.

A series uses the same attack ids as the grid, so an attack runs once for both.
"""

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
SUBMITTED = ("queued", "running", "finished", "stored")  # statuses of attacks that need no new request
LEAST_PROGRESS = 0.03  # share of the work that must be done before a remaining time is shown


def attacks(leak: LeakSettings) -> tuple[str, ...]:
    """Return the chosen attacks that fit the model, judged by the baseline run."""
    baseline = replace(leak, against=(attack_grid.NONE,), eyes="server")
    requests = leak_requests.with_refusals(leak_settings.cells(baseline))
    return tuple(request.attack for request in requests if request.spec)


def main_attack(names: Sequence[str]) -> str:
    """Return the default attack of a panel: `map`, which uses the noise level, or else the first."""
    return "map" if "map" in names else names[0]


# --- running and cancelling --------------------------------------------------------------------------------


def submit(name: str, requests: Sequence[RequestedAttack]) -> None:
    """Submit the attacks of a series that have no result yet, in the given order."""
    session.remember(f"{name}-began", None)
    session.remember(f"{name}-trouble", "")
    try:
        missing = [
            request for request in requests if request.spec and leak_requests.status(request.id) not in SUBMITTED
        ]
        if missing:
            together = [request.id for request in requests]
            leak_requests.check_limits(together, len(missing), series_texts.BUSY)
        leak_requests.submit(missing)
    except LeakLensError as error:
        session.remember(f"{name}-trouble", str(error))
    services.shared().supervisor.wake()
    session.rerun()


def cancel(name: str, requests: Sequence[RequestedAttack]) -> None:
    """Cancel the attacks of this series that have not ended. Attacks that other visitors watch continue."""
    try:
        kept = leak_requests.stop(requests)
        session.remember(f"{name}-trouble", states.shared(kept, "attacks") if kept else "")
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


def progress_bar(
    name: str, requests: Sequence[RequestedAttack], cells: Sequence[AttackCell], label: Callable[[int, int], str]
) -> None:
    """Show the progress of the series, and the button that runs or cancels it."""
    trouble = str(session.recall(f"{name}-trouble", ""))
    if trouble:
        problem(trouble)
    moving = [cell for cell in cells if cell.moving]
    possible = [cell for cell in cells if cell.id]
    missing = [cell for cell in possible if cell.status not in SUBMITTED]
    if not moving and not missing:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-bar"):
        if moving:
            show_progress(name, cells)
            st.button(attack_texts.CANCEL, key=f"{name}-cancel", on_click=cancel, args=(name, tuple(requests)))
        else:
            text = label(len(missing), len(possible))
            st.button(text, key=f"{name}-ask", type="primary", on_click=submit, args=(name, tuple(requests)))


def show_progress(name: str, cells: Sequence[AttackCell]) -> None:
    """Show how many attacks are done, the remaining time, and a problem of the supervisor."""
    submitted = [cell for cell in cells if cell.status]
    done = sum(not cell.moving for cell in submitted)
    text = attack_texts.progress(done, len(submitted), seconds_left(name, cells))
    trouble = services.shared().supervisor.trouble
    if trouble:
        text = f"{text} · {trouble}"
    st.progress(min(1.0, attack_summary.done_fraction(cells)), text)


def seconds_left(name: str, cells: Sequence[AttackCell]) -> float | None:
    """Return the remaining seconds at the speed since the click, or None while that speed is not known."""
    began = session.recall(f"{name}-began")
    now = session.now()
    share = attack_summary.done_fraction(cells)
    if not began:
        session.remember(f"{name}-began", (now, share))
        return None
    start, first_share = began
    progress = share - first_share
    return float((now - start) * (1 - share) / progress) if progress > LEAST_PROGRESS else None


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


def problem(text: str) -> None:
    st.html(f'<p class="ll-problem" role="alert">{html.escape(text)}</p>')


def failures(cells: Sequence[AttackCell]) -> None:
    """Show each reason for a missing picture once."""
    reasons = [cell.problem for cell in cells if cell.problem and not cell.done]
    for reason in dict.fromkeys(reasons):
        problem(reason)
