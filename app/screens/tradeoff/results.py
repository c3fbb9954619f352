"""The results of the Trade-off screen: the frontier, redrawn while runs finish."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.batch import follow
from app.charts import frontiers as frontier_chart
from app.charts import tradeoff as panel
from app.charts.base import Panel
from app.charts.tradeoff import Frontier
from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff.cells import DAMAGED, STOPPED, TradeoffCell, TradeoffView
from app.screens.tradeoff.points import panel as points_panel
from app.screens.tradeoff.requests import STATE
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import messages, services, session, url
from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, states, sweep_verdicts
from app.texts import sweep as sweep_texts
from app.widgets import chart as chart_widget
from engine.epsilon import Epsilon
from engine.examples import sweep
from engine.jobs.batches import BatchKind
from engine.specs.sweep import SweepPoint

POLL_S = 0.5
WHOSE = ("global", "personal")
MOST_FORECASTS = 24  # a forecast takes about 0.05 s the first time


def show(view: TradeoffView, cells: Sequence[TradeoffCell]) -> None:
    """Draw the results. While a run is queued or running, draw them again at each poll."""
    if any(cell.moving for cell in cells):
        st.fragment(messages.guarded(_poll), run_every=POLL_S)(view)
    else:
        _draw(view, cells, False)


def read(view: TradeoffView) -> tuple[TradeoffCell, ...]:
    """Return the cells of a view, from the store or from the stored frontier."""
    if view.live:
        return tradeoff_cells.read(view.points)
    example = sweep.sweep_example()
    return tradeoff_cells.of_example(example) if example else ()


def _poll(view: TradeoffView) -> None:
    """Draw the points that have finished since."""
    cells = read(view)
    if not any(cell.moving for cell in cells):  # the last run has ended
        session.rerun()
    _draw(view, cells, True)


def _draw(view: TradeoffView, cells: Sequence[TradeoffCell], moving: bool) -> None:
    if view.stale:
        messages.show("note", sweep_texts.LAST_GOOD)
    if view.live:
        _progress_bar(view, cells, moving)
    _origin(view, cells, moving)
    settings = _view_settings(view, cells)
    frontiers = tradeoff_cells.frontiers(cells, view.titles, settings, view.headless)
    _frontiers(frontiers, settings.axis, moving, tradeoff_cells.several_steps(cells))
    _model_notes(view, frontiers, settings.own)
    if not frontiers:
        messages.show("lead", sweep_texts.WAITING)
        _forecast_tables(view, settings.eyes)
    if frontiers and view.live and not moving:
        up = panel.accuracy_range(frontiers)
        panels = []  # the charts on the page: only these can be saved
        for frontier in frontiers:
            panels.append(_panel(frontier, settings.axis, up, len(frontiers) > 1))
        points_panel.details(view, cells, frontiers, settings, panels)


# --- running and cancelling --------------------------------------------------------------------------------


def _progress_bar(view: TradeoffView, cells: Sequence[TradeoffCell], moving: bool) -> None:
    """Show the progress, and the buttons that cancel, resume and retry."""
    stopped = [cell for cell in cells if cell.status in STOPPED]
    if moving:
        shipped = [cell.point.id for cell in cells if cell.shipped]
        followed = follow.read([point.id for point in view.points], shipped, _kind(view))
        follow.bar(
            "tradeoff", followed, None, "runs", tradeoff_requests.run, partial(tradeoff_requests.cancel, view.points)
        )
    elif stopped:
        known = sum(cell.result is not None for cell in cells)
        with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-bar"):
            text = sweep_texts.STOPPED.format(known=known, all=len(cells))
            st.html(f'<p class="ll-lead" role="status">{html.escape(text)}</p>', width="content")
            st.button(sweep_texts.GO_ON, key="tradeoff-go-on", on_click=tradeoff_requests.run)
    _failures(view, [cell for cell in cells if cell.problem], moving)


def _kind(view: TradeoffView) -> BatchKind:
    return "table" if view.settings.table else "sweep"


def _failures(view: TradeoffView, failed: Sequence[TradeoffCell], moving: bool) -> None:
    """Show why single points are missing, each reason once, and the button that retries them."""
    damaged = {cell.point.id for cell in failed if cell.status == DAMAGED}
    deletable = tradeoff_requests.deletable(sorted(damaged))
    names_by_reason: dict[str, list[str]] = {}
    for cell in failed:
        point = cell.point
        name = f"{view.titles.get(point.name, point.name)}, {sweep_texts.noise(point.noise)}"
        reason = cell.problem
        if point.id in damaged:
            reason = sweep_texts.lost(point.id, point.id in deletable)
        names_by_reason.setdefault(reason, []).append(name)
    for reason, names in names_by_reason.items():
        messages.show("problem", f"{'; '.join(dict.fromkeys(names))}: {reason}")
    can_retry = any(cell.status != DAMAGED or cell.point.id in deletable for cell in failed)
    if can_retry and not moving:
        st.button(sweep_texts.RETRY, key="tradeoff-retry", on_click=tradeoff_requests.run)


def _origin(view: TradeoffView, cells: Sequence[TradeoffCell], moving: bool) -> None:
    """Show that points come from the stored example, and the button that runs them on this machine."""
    example = sweep.sweep_example()
    count = sum(cell.shipped for cell in cells)
    if not example or not count:
        return
    all_stored = count == len(cells)
    text = states.STORED.format(made=example.made) if all_stored else sweep_texts.stored(count, example.made)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(text, width="content")
        if view.live and not moving:
            st.button(sweep_texts.LIVE, key="tradeoff-live", on_click=tradeoff_requests.run, args=(True,))


# --- the view ----------------------------------------------------------------------------------------------


def _view_settings(view: TradeoffView, cells: Sequence[TradeoffCell]) -> TradeoffSettings:
    """Ask for the view of ε and for the models that count. Both can change while runs continue."""
    if not view.live:
        return view.settings
    current = STATE.current()
    with st.container(horizontal=True, vertical_alignment="bottom", key="tradeoff-look"):
        st.segmented_control(
            sweep_texts.AXIS, list(sweep_texts.AXES), format_func=sweep_texts.AXES.__getitem__, required=True,
            **session.bind("tradeoff-axis", current.axis, lambda value: tradeoff_requests.change_view(axis=value)),
        )  # fmt: skip
        if tradeoff_cells.has_personal_models(cells):
            st.segmented_control(
                sweep_texts.WHOSE, WHOSE, format_func=sweep_texts.MODELS.__getitem__, required=True,
                **session.bind(
                    "tradeoff-whose", current.whose, lambda value: tradeoff_requests.change_view(whose=value)
                ),
            )  # fmt: skip
    settings = view.settings.with_(eyes=current.eyes, whose=current.whose, axis=current.axis)
    if not view.stale:
        # While runs continue, only this part of the page is drawn, so the link is updated here.
        url.write_screen_link("tradeoff", settings.link())
    return settings


# --- ε before any run --------------------------------------------------------------------------------------


def _forecast_tables(view: TradeoffView, observer: str) -> None:
    """Show the forecast ε of every method at every noise, in a table for each unit."""
    first = {(point.name, point.noise): point for point in reversed(view.points) if point.noise is not None}
    if not 0 < len(first) <= MOST_FORECASTS:
        return
    by_unit: dict[str, list[SweepPoint]] = {}
    for point in reversed(first.values()):
        by_unit.setdefault(point.spec.method.unit() or "user", []).append(point)
    for unit, points in by_unit.items():
        messages.explain(sweep_texts.BUYS.format(seen=privacy.SEEN_BY[observer], per=privacy.PER[unit]))
        table = _forecast_table(points, view, observer)
        st.html(f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{table}</div>')
        _forecast_terms(points, view, observer)
        _missing_epsilon(points, view, observer)


def _forecast_terms(points: Sequence[SweepPoint], view: TradeoffView, observer: str) -> None:
    """Show the terms of each finite ε in the table: adjacency, δ, accountant, bound and sampling."""
    rows = []
    for point in points:
        answer = _answer(point, observer)
        if answer and answer.value is not None:
            rows.append((view.titles.get(point.name, point.name), point.noise, answer))
    if rows:
        for sentence in sweep_texts.grouped_terms(rows):
            messages.explain(sentence)


def _missing_epsilon(points: Sequence[SweepPoint], view: TradeoffView, observer: str) -> None:
    """Show why methods have no finite ε, each reason once, with its methods."""
    titles_by_reason: dict[str, dict[str, None]] = {}
    for point in points:
        answer = _answer(point, observer)
        if answer and answer.value is not None:
            continue
        if services.forecast_of(point.spec.canonical(), threads=1).fatal:
            continue  # such a run has no forecast, and the form says why
        reason = answer.reason if answer else _absent_reason(point, observer)
        title = view.titles.get(point.name, point.name)
        titles_by_reason.setdefault(reason or sweep_texts.UNPROMISED, {})[title] = None
    for reason, titles in titles_by_reason.items():
        messages.explain(f"{', '.join(titles)}: {sweep_texts.no_epsilon(observer, reason)}.")


def _absent_reason(point: SweepPoint, observer: str) -> str:
    """Return why a method has no such view."""
    guarantee = services.forecast_of(point.spec.canonical(), threads=1).guarantee
    return guarantee.absent.get(observer, "") if guarantee else ""


def _forecast_table(points: Sequence[SweepPoint], view: TradeoffView, observer: str) -> str:
    boxes = {(point.name, point.noise): _forecast_epsilon(point, observer) for point in points}
    noises = sorted({point.noise for point in points if point.noise is not None}, reverse=True)
    heads = "".join(f'<th scope="col">{html.escape(sweep_texts.noise(noise))}</th>' for noise in noises)
    rows = []
    for name in dict.fromkeys(point.name for point in points):
        cells = "".join(f"<td>{boxes.get((name, noise), '–')}</td>" for noise in noises)
        rows.append(f'<tr><th scope="row">{html.escape(view.titles.get(name, name))}</th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">{sweep_texts.HEADS["method"]}</th>{heads}</tr></thead>'
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _answer(point: SweepPoint, observer: str) -> Epsilon | None:
    """Return the forecast ε of one view, or None if the method has no such view."""
    forecast = services.forecast_of(point.spec.canonical(), threads=1)
    return next((answer for answer in forecast.answers if answer.view == observer), None)


def _forecast_epsilon(point: SweepPoint, observer: str) -> str:
    answer = _answer(point, observer)
    if answer is None or answer.value is None:
        return "no ε"
    size = privacy.size(answer.value)
    return f'<b class="ll-{size.side}">ε {numbers.epsilon(answer.value)}</b> <small>{size.word}</small>'


# --- the charts --------------------------------------------------------------------------------------------


def _frontiers(frontiers: Sequence[Frontier], axis: str, moving: bool, several_steps: bool) -> None:
    up = panel.accuracy_range(frontiers)
    for frontier in frontiers:
        if len(frontiers) > 1:
            st.html(f'<h2 class="ll-title">{html.escape(sweep_texts.UNITS[frontier.unit])}</h2>')
        _frontier(frontier, axis, up, moving)
        for note in _frontier_notes(frontier, several_steps):
            messages.show("note", note)
    if len(frontiers) > 1:
        messages.show("note", sweep_texts.APART)


def _frontier_notes(frontier: Frontier, several_steps: bool) -> list[str]:
    """Return the terms of every ε in the charts, and how to read the bands."""
    bands = sweep_texts.bands(frontier.points, several_steps)
    notes = [*frontier_chart.terms(frontier), bands]
    return [note for note in notes if note]


def _model_notes(view: TradeoffView, frontiers: Sequence[Frontier], own: bool) -> None:
    """Explain which models the accuracy is of.

    With personal models: no ε covers them, and the baselines have none. Otherwise: methods without a shared last layer.
    """
    lines = [line for frontier in frontiers for line in frontier.lines]
    if own and lines:
        baselines = [line for frontier in frontiers for line in frontier.baselines]
        titles = dict.fromkeys(view.titles.get(line.method, line.method) for line in baselines)
        messages.show("note", sweep_texts.own_models(list(titles)))
    headless = dict.fromkeys(line.title for line in lines if line.method in view.headless)
    if headless and not own:
        messages.show("note", sweep_texts.HEADLESS.format(titles=", ".join(headless)))


def _frontier(frontier: Frontier, axis: str, up: tuple[float, float], moving: bool) -> None:
    baseline = frontier.baselines[0].points[0] if frontier.baselines else None
    lines = {line.title: line.points for line in frontier.lines}
    compare = sweep_verdicts.at_budget if _by_epsilon(frontier, axis) else sweep_verdicts.at_noise
    verdict = compare(lines, baseline, frontier.view, frontier.own)
    if verdict:
        st.html(f'<p class="ll-lead" role="status" aria-live="polite">{html.escape(verdict)}</p>')
    _chart(_panel(frontier, axis, up), moving)
    for reason in frontier_chart.missing_epsilon_reasons(frontier):
        messages.explain(reason)


def _by_epsilon(frontier: Frontier, axis: str) -> bool:
    """Return whether the chart is by ε. Without a point that has a finite ε, it is by noise."""
    return axis == "epsilon" and frontier.finite


def _panel(frontier: Frontier, axis: str, up: tuple[float, float], name_unit: bool = False) -> Panel[Any]:
    """Return the chart of one unit, by ε or by noise. `name_unit` adds the unit to the title."""
    unit = frontier.unit
    suffix = f", {privacy.PER[unit]}" if name_unit else ""
    if _by_epsilon(frontier, axis):
        return Panel[Any](
            f"tradeoff-epsilon-{unit}", f"{sweep_texts.BY_EPSILON}{suffix}", (), lambda events: None,
            lambda infos, dark: panel.by_epsilon(frontier, up, dark), lambda infos: panel.describe_by_epsilon(frontier),
        )  # fmt: skip
    return Panel[Any](
        f"tradeoff-noise-{unit}", f"{sweep_texts.BY_NOISE}{suffix}", (), lambda events: None,
        lambda infos, dark: panel.by_noise(frontier, up, dark), lambda infos: panel.describe_by_noise(frontier),
    )  # fmt: skip


def _chart(chart: Panel[Any], moving: bool) -> None:
    """Draw a chart. Its points can be chosen once no run continues, since a redrawn chart loses its selection."""
    key = f"chart-{chart.name}"
    selection: dict[str, Any] = {}
    if not moving:
        selection = {"on_select": lambda: _pick_chart_point(key), "selection_mode": "points"}
    with st.container():
        st.html(f'<h2 class="ll-title">{html.escape(chart.title)}</h2>')
        st.plotly_chart(
            chart.draw([], session.dark()),
            key=key,
            theme=None,
            config=chart_widget.CONFIG,
            alt=chart.describe([]),
            **selection,
        )


def _pick_chart_point(key: str) -> None:
    points = session.recall(key, {}).get("selection", {}).get("points", [])
    if points and points[0].get("customdata"):
        tradeoff_requests.pick(*points[0]["customdata"])
