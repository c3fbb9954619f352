"""The form of the Trade-off screen: the run, the methods and values that vary it, and the expected time."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.cells import DAMAGED, TO_RUN, TradeoffCell
from app.screens.tradeoff.paper import panel as paper_panel
from app.screens.tradeoff.requests import STATE, choose_method_field
from app.screens.tradeoff.settings import TradeoffSettings, offered
from app.session import limits as class_limits
from app.session import messages, run_settings, services, session, url
from app.texts import batches as batch_texts
from app.texts import sweep as sweep_texts
from app.widgets import fields
from engine.errors import LeakLensError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from engine.specs.sweep import SweepPoint

LINK_CSS = "<style>.st-key-tradeoff-lab button { text-decoration: underline; }</style>"
FIELDS = ("model", "dataset", "clients", "sampled", "rounds", "methods", "noises", "steps", "of")


def form() -> None:
    """Draw the form. A refusal is shown below its field."""
    settings = STATE.current()
    for note in STATE.notes():
        messages.show("note", note)
    kinds = (sweep_texts.OF_OWN, sweep_texts.OF_PAPER)
    st.segmented_control(
        sweep_texts.ASK, kinds, required=True, width="stretch",
        **session.bind("tradeoff-kind", kinds[bool(settings.table)], _choose_kind),
    )  # fmt: skip
    if settings.table:
        paper_panel.form(settings)
        fields.screen_field(STATE, "seeds")
        return
    refusal = _refusal()
    _run(settings, refusal)
    titles = sweep_points.titles()
    fields.screen_field(STATE, "methods", {name: titles.get(name, name) for name in offered(settings.methods)})
    _show_refusal("methods", refusal)
    for name in ("noises", "steps"):
        fields.screen_field(STATE, name)
        _show_refusal(name, refusal)
    fields.screen_field(STATE, "seeds")
    fields.screen_field(STATE, "plain")
    with st.popover(sweep_texts.OF):
        _method_fields(settings, titles, refusal)
    _show_refusal("of", refusal)


def _choose_kind(chosen: str) -> None:
    paper_panel.switch(chosen == sweep_texts.OF_PAPER)


def _refusal() -> str:
    """Return why the current settings cannot run, or an empty string."""
    try:
        tradeoff_requests.points()
    except LeakLensError as error:
        return str(error)
    return ""


def _run(settings: TradeoffSettings, refusal: str) -> None:
    """Draw the main fields of the run. Try has the others."""
    with st.container(horizontal=True):
        _part("model", "Train")
        _part("dataset", "on")
    _show_refusal("model", refusal)
    _show_refusal("dataset", refusal)
    with st.container(horizontal=True):
        for name, label in (("clients", "with clients"), ("sampled", "of them a round"), ("rounds", "for rounds")):
            st.number_input(label, step=1, **fields.limited(name, settings.run[name]), **STATE.bind_run(name))
    for name in ("clients", "sampled", "rounds"):
        _show_refusal(name, refusal)
    title = run_settings.part_class("partition", settings.run["partition"]).title
    other_fields = sweep_texts.rest(settings.run, title, sweep_points.changed_fields(settings.run))
    st.html(f'<p class="ll-why ll-faint">{html.escape(other_fields)}</p>')
    st.html(LINK_CSS)
    if st.button(sweep_texts.IN_TRY, key="tradeoff-try", help=sweep_texts.IN_TRY_HELP, type="tertiary"):
        url.open_screen("try", tradeoff_requests.try_link())


def _part(part: str, label: str) -> None:
    titles = {name: run_settings.part_class(part, name).title for name in run_settings.names(part)}
    st.selectbox(label, list(titles), format_func=lambda name: titles.get(name, name), **STATE.bind_run(part))


def _show_refusal(name: str, refusal: str) -> None:
    """Show the refusal below the field that it is about."""
    if not refusal or sweep_points.field_of_refusal(refusal) != name:
        return
    text = sweep_points.refusal_in_words(refusal)
    if name == "of" and sweep_points.run_is_refused(STATE.current()):
        text = f"{text.rstrip('.')}. {sweep_texts.OF_THE_RUN}"
    messages.show("problem", text)


# --- fields of single methods ------------------------------------------------------------------------------


def _method_fields(settings: TradeoffSettings, titles: Mapping[str, str], refusal: str) -> None:
    """Draw the fields of each method. A refused run has no method fields, so it must be fixed first."""
    if refusal:
        run_is_refused = sweep_points.run_is_refused(settings)
        if run_is_refused or sweep_points.field_of_refusal(refusal) != "of":
            messages.show("note", sweep_texts.OF_THE_RUN if run_is_refused else sweep_texts.FIX_FIELDS)
            return
    for method in settings.methods:
        st.html(f'<h2 class="ll-title">{html.escape(titles[method])}</h2>')
        values = settings.of.get(method, {}) if refusal else sweep_points.method_fields(settings, method)
        declared = run_settings.own_fields("method", method)
        for name in values:
            _method_field(method, name, declared[name], values[name])


def _method_field(method: str, name: str, info: FieldInfo, value: Any) -> None:
    label = info.title or name
    kind = run_settings.kind_of(info)
    key = f"tradeoff-of-{method}-{name}"
    tied = session.bind(key, value, lambda chosen: choose_method_field(method, name, chosen))
    if kind is bool:
        st.toggle(label, help=info.description, **tied)
    elif kind is str:
        st.selectbox(label, run_settings.choices(info), help=info.description, **tied)
    elif kind is int:
        st.number_input(label, step=1, help=info.description, **tied)
    else:
        st.number_input(label, step=0.1, format="%g", help=info.description, **tied)


# --- before the click --------------------------------------------------------------------------------------


def run_button(cells: Sequence[TradeoffCell]) -> None:
    """Show the problems, the button that runs the missing points, and the expected time."""
    try:
        points = tradeoff_requests.points()
    except LeakLensError as error:
        if sweep_points.field_of_refusal(str(error)) not in FIELDS:  # the others are shown below their field
            messages.show("problem", sweep_points.refusal_in_words(str(error)))
        label = sweep_texts.RUN.format(many="").strip()
        st.button(label, type="primary", disabled=True, width="stretch", help=sweep_texts.FIX_FIELDS)
        return
    missing = _missing(points, cells)
    known = sum(cell.known for cell in cells)
    too_large = class_limits.too_large(points[0].spec.canonical(), len({point.seed for point in points}))
    fatal = _problems(points) or too_large is not None
    trouble = str(too_large or STATE.trouble())
    if trouble:
        messages.show("problem", trouble)
    moving = any(cell.moving for cell in cells)
    # Runs of another visitor leave the button: what is neither finished nor in the queue can be requested.
    under_way = [cell.point.id for cell in cells if cell.moving]
    joins = bool(under_way) and not missing and not services.wanted(under_way)
    label = sweep_texts.UNDER_WAY if moving and not missing else sweep_texts.run(len(missing), len(points), known)
    label = batch_texts.JOIN if joins else label
    st.button(
        label, key="tradeoff-run",
        type="primary", width="stretch", disabled=fatal or not (missing or joins),
        on_click=tradeoff_requests.run,
    )  # fmt: skip
    if not fatal and (missing or not moving):
        expected = seconds(missing) if missing else None
        st.caption(sweep_texts.expected(len(points), known, expected))


def _missing(points: Sequence[SweepPoint], cells: Sequence[TradeoffCell]) -> list[SweepPoint]:
    """Return the points that a click submits. A damaged run counts only if this visitor may delete its record."""
    damaged = [cell.point.id for cell in cells if cell.status == DAMAGED]
    deletable = tradeoff_requests.deletable(damaged)
    status_of = {cell.point.id: cell.status for cell in cells}
    missing = []
    for point in points:
        status = status_of[point.id]
        if status == DAMAGED and point.id not in deletable:
            continue
        if status in TO_RUN:
            missing.append(point)
    return missing


def seconds(points: Sequence[SweepPoint]) -> float | None:
    """Return the seconds until these points would have ended, with everything that runs before them."""
    by_method = {}
    for point in _one_of_each_method(points):
        spec = point.spec.canonical()
        usual = services.store().usual_seconds(spec)
        by_method[point.method] = usual or services.forecast_of(spec, threads=1).seconds
    expected = {}
    for point in points:
        each = by_method[point.method]
        if each is None:
            return None
        expected[point.id] = each
    return services.store().seconds_until(expected, session.visitor(), services.slots())


def _one_of_each_method(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Return the first point of each method, the methods in the order of their last points."""
    by_method = {point.method: point for point in reversed(points)}
    return list(by_method.values())[::-1]


def _problems(points: Sequence[SweepPoint]) -> bool:
    """Show each problem once, with its methods. Return whether one of them prevents the runs."""
    samples = _one_of_each_method(points)
    methods_by_problem: dict[tuple[str, bool], list[str]] = {}
    for point in samples:
        title = type(point.spec.method).title
        for problem in services.forecast_of(point.spec.canonical(), threads=1).problems:
            key = (f"{problem.reason}. {problem.remedy}.", problem.fatal)
            methods_by_problem.setdefault(key, []).append(title)
    for (text, fatal), methods in methods_by_problem.items():
        prefix = "" if len(methods) == len(samples) else f"{', '.join(methods)}: "
        messages.show("problem" if fatal else "note", f"{prefix}{text}")
    return any(fatal for _, fatal in methods_by_problem)
