"""The form of Try: protection and budget of each side, the settings that both share, and the button Run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.screens.try_it import requests as try_requests
from app.screens.try_it import run_fields
from app.screens.try_it.settings import STATE, TrySettings
from app.screens.try_it.sides import SideRequest, requests_of
from app.session import limits as class_limits
from app.session import messages, run_settings, services, session
from app.texts import product
from app.texts import try_it as try_texts
from engine.errors import LeakLensError
from engine.jobs.status import MOVING

STOPPED = ("cancelled", "interrupted")
NOISES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0)
CSS = """
<style>
[class*="st-key-try-side-"] { border-top: 1px solid var(--hair); padding-top: .5rem; }
.ll-side { font-size: 1.3rem; font-weight: 700; margin: 0; line-height: 2.4rem; }
.st-key-try-shared [data-testid="stExpander"] details { border: 0; }
.st-key-try-shared [data-testid="stExpander"] summary { padding-left: 0; }
</style>
"""


def form() -> list[SideRequest] | None:
    """Draw the form. Returns what its settings request; None if they make no run."""
    st.html(CSS)
    for note in STATE.notes():
        messages.show("note", note)
    settings = STATE.current()
    problems = _problems(settings)
    _side("A", settings)
    if settings.other is not None:
        _side("B", settings)
    with st.container(key="try-shared"):
        run_fields.show(problems)
    return _run_row(settings, problems)


def _problems(settings: TrySettings) -> dict[str, str]:
    """Why the engine refuses the settings of a side, by side."""
    runs = {"A": settings.run, **({"B": settings.other} if settings.other is not None else {})}
    problems = {}
    for side, run in runs.items():
        problem = services.error_of(partial(run_settings.spec_of, run))
        if problem:
            problems[side] = problem
    return problems


def _side(side: str, settings: TrySettings) -> None:
    """Protection and budget of one side, and the button that adds or removes side B."""
    with st.container(key=f"try-side-{side}"):
        name, method, budget, more = st.columns([0.25, 2.2, 5, 1], vertical_alignment="bottom")
        name.html(f'<p class="ll-side">{side}</p>')
        with method:
            _protection(side)
        with budget:
            _budget(side, settings.eyes)
        with more:
            if side == "B":
                st.button(try_texts.REMOVE, key="try-remove", on_click=try_requests.remove, type="tertiary")
            elif settings.other is None:
                st.button(try_texts.ADD, key="try-add", on_click=try_requests.add, help=try_texts.ADD_HELP)


def _protection(side: str) -> None:
    titles = {name: run_settings.part_class("method", name).title for name in run_settings.names("method")}
    st.selectbox(
        "Protection", list(titles), format_func=titles.__getitem__,
        **session.bind(
            f"try-{side}-method", STATE.run_of(side)["method"],
            lambda name: try_requests.choose_protection(side, try_requests.protection(name)),
        ),
    )  # fmt: skip


def _budget(side: str, view: str) -> None:
    run = STATE.run_of(side)
    del view
    if "method.noise" not in run:
        st.caption("This protection has no noise.")
        return
    stops = sorted({*NOISES, float(run["method.noise"])})
    st.select_slider(
        "Noise", stops, format_func="{:g}".format,
        **session.bind(
            f"try-{side}-noise", float(run["method.noise"]), lambda noise: STATE.change(side, {"method.noise": noise})
        ),
    )  # fmt: skip


# --- the button Run --------------------------------------------------------------------------------------------


def _run_row(settings: TrySettings, problems: dict[str, str]) -> list[SideRequest] | None:
    """The problems or the expected time, and the button."""
    if STATE.trouble():
        messages.show("problem", STATE.trouble())
    for problem in dict.fromkeys(problems.values()):
        messages.show("problem", problem)
    if problems:
        st.button(try_texts.RUN, type="primary", key="try-run", disabled=True, help=try_texts.FIX)
        return None
    try:
        requests = requests_of(settings)
    except LeakLensError as error:
        messages.show("problem", str(error))
        return None
    refused = _refusals(requests, settings.seeds)
    with st.container(horizontal=True, vertical_alignment="center", key="try-run-row"):
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
    """*Run* for what is missing; *Run it live* where everything is stored."""
    missing = try_requests.members_of(requests)
    statuses = services.statuses([member.run for member in missing])
    left = [member for member in missing if statuses[member.run] != "finished"]
    if left and all(statuses[member.run] in MOVING for member in left):
        return  # the progress below has its own button
    live = not left
    stopped = any(statuses[member.run] in STOPPED for member in left)
    label = try_texts.LIVE if live else (try_texts.RESUME if stopped else try_texts.RUN)
    st.button(
        label,
        type="secondary" if live else "primary",
        key="try-run",
        on_click=try_requests.run,
        args=(live,),
        disabled=refused,
    )
    if not refused:
        st.caption(_expected(requests, [member.run for member in left]), width="content")


def _expected(requests: Sequence[SideRequest], left: Sequence[str]) -> str:
    """The time until the missing runs would have ended, with everything that waits before them."""
    usual: dict[str, float] = {}
    for request in requests:
        seconds = services.store().usual_seconds(request.spec.canonical())
        seconds = seconds or services.forecast_of(request.spec.canonical()).seconds
        specs = [*request.specs, *([request.baseline] if request.baseline else [])]
        usual |= {spec.id: seconds for spec in specs if seconds is not None and spec.id in left}
    if not left:
        return ""
    until = services.store().seconds_until(usual, session.visitor(), services.slots())
    alone = sum(usual.values()) / services.slots()
    return product.expected(until, alone, len(usual), False, len(services.store().queue()))
