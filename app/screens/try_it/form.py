"""The form of Try: protection and budget of each side, the settings that both share, and the button Run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.screens.try_it import budget as try_budget
from app.screens.try_it import requests as try_requests
from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import fields as run_fields
from app.screens.try_it.settings import STATE, TrySettings
from app.screens.try_it.sides import SideRequest, requests_of
from app.session import limits as class_limits
from app.session import messages, run_settings, services, session
from app.texts import numbers, product, states
from app.widgets import protection_picker
from engine.errors import LeakLensError
from engine.jobs.batches import BatchMember
from engine.jobs.status import MOVING

STOPPED = ("cancelled", "interrupted")
AT_ONCE = 2  # workers that are ready for a click: one attacks, one trains
CSS = """
<style>
[class*="st-key-try-side-"] { border-top: 1px solid var(--hair); padding-top: .5rem; }
.ll-side { font-size: 1.3rem; font-weight: 700; margin: 0; line-height: 2.4rem; }
.st-key-try-shared { border-top: 1px solid var(--hair); padding-top: .6rem; }
.st-key-try-change button p { text-decoration: underline; }
.st-key-try-run-row { margin-left: auto; }
@media (max-width: 700px) {
  .st-key-try-run-row { margin-left: 0; }
  [class*="st-key-try-side-"] [data-testid="stHorizontalBlock"] { gap: .6rem !important; }
}
</style>
"""


def form() -> list[SideRequest] | None:
    """Draw the form. Returns what its settings request; None if they make no run."""
    st.html(CSS)
    for note in STATE.notes():
        messages.show("note", note)
    settings = STATE.current()
    problems = _problems(settings)
    _sides(settings)
    return _shared_row(settings, problems)


def _problems(settings: TrySettings) -> dict[str, str]:
    """Why the engine refuses the settings of a side, by side."""
    runs = {"A": settings.run, **({"B": settings.other} if settings.other is not None else {})}
    problems = {}
    for side, run in runs.items():
        problem = services.error_of(partial(run_settings.spec_of, run))
        if problem:
            problems[side] = problem
    return problems


def _sides(settings: TrySettings) -> None:
    """Protection and budget of side A, or of both sides next to each other."""
    if settings.other is None:
        with st.container(key="try-side-A"):
            method, slider, more = st.columns([2.4, 5, 1], gap="large")
            with method:
                _protection("A", settings)
            with slider:
                _budget("A", settings)
            more.button(try_texts.ADD, key="try-add", on_click=try_requests.add, help=try_texts.ADD_HELP)
        return
    for side, column in zip(("A", "B"), st.columns(2, gap="large"), strict=True):
        with column, st.container(key=f"try-side-{side}"):
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.html(f'<p class="ll-side">{side}</p>', width="content")
                _protection(side, settings)
                if side == "B":
                    st.button(try_texts.REMOVE, key="try-remove", on_click=try_requests.remove, type="tertiary")
            _budget(side, settings)


def _budget(side: str, settings: TrySettings) -> None:
    try_budget.draw(side, STATE.run_of(side), settings.eyes, partial(STATE.change, side))


def _protection(side: str, settings: TrySettings) -> None:
    choose = partial(try_requests.choose_protection, side)
    protection_picker.show(STATE.run_of(side), settings.eyes, choose, f"try-{side}-method")


# --- what both sides share, and the button Run ------------------------------------------------------------------


def _shared_row(settings: TrySettings, problems: dict[str, str]) -> list[SideRequest] | None:
    """The line about the settings with its fields, the problems, and the button with the expected time."""
    requests = None
    refused = True
    with st.container(horizontal=True, vertical_alignment="center", key="try-shared"):
        opened = run_fields.line(settings)
        place = st.container(horizontal=True, vertical_alignment="center", width="content", key="try-run-row")
    if opened or problems:
        run_fields.show(settings, problems)
    for problem in dict.fromkeys(filter(None, [STATE.trouble(), *problems.values()])):
        messages.show("problem", problem)
    if not problems:
        try:
            requests = requests_of(settings)
            refused = _refusals(requests, settings.seeds)
        except LeakLensError as error:
            messages.show("problem", str(error))
    with place:
        if requests is None:
            st.button(try_texts.RUN, type="primary", key="try-run", disabled=True, help=try_texts.FIX)
        else:
            _button(requests, refused)
    return requests


def _refusals(requests: Sequence[SideRequest], seeds: int) -> bool:
    """Show the problems of the forecasts and of the limits of a class. Returns whether they forbid the run."""
    refused = False
    for request in requests:
        canonical = request.spec.canonical()
        too_large = class_limits.too_large(canonical, seeds)
        if too_large:
            messages.show("problem", str(too_large))
        forecast = services.forecast_of(canonical)
        side = f"{request.name}: " if len(requests) > 1 else ""
        for problem in forecast.problems:
            text = f"{side}{problem.reason}. {problem.remedy}."
            messages.show("problem" if problem.fatal else "note", text)
        refused = refused or forecast.fatal or too_large is not None
    return refused


def _button(requests: Sequence[SideRequest], refused: bool) -> None:
    """*Run* for what is missing, *Run it live* where all of it is stored. What is under way has its button below."""
    everything = try_requests.members_of(requests, live=True)
    statuses = services.statuses([member.run for member in everything])
    left = [member for member in try_requests.members_of(requests) if statuses[member.run] != "finished"]
    moving = [run for run, status in statuses.items() if status in MOVING]
    if moving and {member.run for member in left} <= set(moving):
        return
    if all(status == "finished" for status in statuses.values()):
        st.caption(try_texts.FINISHED, width="content")
        return
    if not left:
        st.button(try_texts.LIVE, key="try-run", on_click=try_requests.run, args=(True,), disabled=refused)
        example = services.stored_example(requests[0].spec.id)
        if example is not None:
            st.caption(states.STORED.format(made=example.made), width="content")
        return
    stopped = any(statuses[member.run] in STOPPED for member in left)
    label = try_texts.RESUME if stopped else try_texts.RUN
    st.button(label, type="primary", key="try-run", on_click=try_requests.run, disabled=refused)
    if not refused:
        services.shared().supervisor.expect(AT_ONCE)
        st.caption(_expected(left), width="content")


def _expected(members: Sequence[BatchMember]) -> str:
    """The time until the missing runs would have ended, with everything that waits before them.

    As long as the store has no attack like these, it is the time of the training.
    """
    store = services.store()
    usual: dict[str, float] = {}
    unknown = False
    for member in members:
        seconds = store.usual_seconds(member.spec)
        if seconds is None and "attack" not in member.spec:
            seconds = services.forecast_of(member.spec).seconds
        if seconds is None:
            unknown = True
        else:
            usual[member.run] = seconds
    until = store.seconds_until(usual, session.visitor(), services.slots())
    if unknown:
        return try_texts.EXPECTED.format(seconds=numbers.duration(until or sum(usual.values())))
    return product.expected(until, sum(usual.values()) / services.slots(), len(usual), False, len(store.queue()))
