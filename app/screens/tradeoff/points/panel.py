"""The details below the frontier: a table of all points, the chosen point, the guarantees, the link and the files."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.charts.base import Panel
from app.charts.tradeoff import Frontier, TradeoffLine
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.cells import DAMAGED, TradeoffCell, TradeoffView
from app.screens.tradeoff.paper import panel as paper_panel
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import messages, run_settings, services, session, url
from app.texts import privacy
from app.texts import sweep as sweep_texts
from app.widgets import card
from app.widgets import chart as chart_widget
from app.widgets import export as export_widget
from engine.results.summary import PointSummary

RUN_COLUMNS = (
    "run", "method", "noise", "server-step", "seed", "accuracy", "accuracy-personal", "unit", "adjacency", "delta",
)  # fmt: skip
VIEW_COLUMNS = ("epsilon", "accountant", "sampling", "bound", "reason")  # of the CSV file, one of each for each view


def details(
    view: TradeoffView,
    cells: Sequence[TradeoffCell],
    frontiers: Sequence[Frontier],
    settings: TradeoffSettings,
    panels: Sequence[Panel[Any]],
) -> None:
    st.html(f'<h2 class="ll-title">{sweep_texts.TABLE}</h2>')
    rows = table(frontiers, settings)
    st.dataframe(
        [row for row, _ in rows], hide_index=True, alt=sweep_texts.TABLE_ALT, key="tradeoff-table",
        column_config=_columns(frontiers, settings.eyes), on_select=lambda: _pick_row(rows),
        selection_mode="single-row", placeholder="–",
    )  # fmt: skip
    _chosen_point(view, cells, frontiers, settings)
    _paper(settings, cells)
    with st.container(horizontal=True):
        with st.popover(sweep_texts.SHARE):
            st.markdown(sweep_texts.SHARE_TEXT)
            st.code(url.current_address(), language=None, wrap_lines=True)
        export_widget.show(_export_path(cells, settings))
    with st.expander(sweep_texts.PROMISES):
        _guarantees(view)
    card.not_covered()
    with st.expander(sweep_texts.AWAY):
        st.code(sweep_points.command(settings), language="bash", wrap_lines=True)
        st.download_button(
            "Download CSV",
            partial(table_csv, cells),
            "leaklens-trade-off.csv",
            "text/csv",
            key="csv",
            on_click="ignore",
        )
        chart_widget.save_buttons({panel.name: panel.title for panel in panels})


def _export_path(cells: Sequence[TradeoffCell], settings: TradeoffSettings) -> str:
    """The address of the exported page: exactly the runs on the screen, for the observer and the models shown."""
    ids = [cell.point.id for cell in cells if cell.status and cell.status != DAMAGED]
    return url.export_list_path("sweep", ids, view=settings.eyes, whose=settings.whose)


def _paper(settings: TradeoffSettings, cells: Sequence[TradeoffCell]) -> None:
    """Show the data behind the paper's numbers, and our ranking of methods next to the paper's."""
    if settings.table:
        messages.show("note", f"{sweep_texts.BESIDE_PAPER} {paper_panel.row_setting(settings)}")
    rankings = paper_panel.rankings(settings, cells)
    if not rankings:
        return
    paragraphs = ""
    for noise, sentence in rankings:
        paragraphs += f"<p><b>{sweep_texts.noise(noise).capitalize()}.</b> {html.escape(sentence)}</p>"
    st.html(f'<h2 class="ll-title">{html.escape(sweep_texts.RANKS)}</h2>{paragraphs}')


def table(frontiers: Sequence[Frontier], settings: TradeoffSettings) -> list[tuple[dict[str, Any], PointSummary]]:
    """Return a row for each point, and the point. Each unit has its own column of ε."""
    paper = paper_panel.reported(settings)
    units = [frontier.unit for frontier in frontiers]
    rows = []
    for unit, line in _lines_with_units(frontiers):
        for point in line.points:
            percents = [100 * value for value in point.scores(settings.own)]
            row: dict[str, Any] = {
                "method": line.title, "noise": point.noise, "step": point.step,
                "accuracy": 100 * point.score(settings.own), "low": min(percents), "high": max(percents),
                "seeds": len(percents),
            }  # fmt: skip
            for column in units:
                row[column] = _epsilon(point, settings.eyes) if column == unit else None
            if paper:
                row["reported"] = _reported(point, paper, settings.own)
            rows.append((row, point))
    return rows


def _epsilon(point: PointSummary, view: str) -> float | None:
    epsilon = point.finite_epsilon(view)
    return epsilon.value if epsilon else None


def _lines_with_units(frontiers: Sequence[Frontier]) -> list[tuple[str, TradeoffLine]]:
    """Return the lines of all units, then each baseline once. A baseline has no unit."""
    lines = []
    baselines = {}
    for frontier in frontiers:
        lines += [(frontier.unit, line) for line in frontier.lines]
        for line in frontier.baselines:
            baselines[line.title] = line
    return [*lines, *(("", line) for line in baselines.values())]


def _reported(point: PointSummary, paper: Mapping[tuple[str, float | None], float], own: bool) -> float | None:
    """Return the paper's number, or None next to personal models: the paper reports the shared model."""
    return None if own and point.personals else paper.get((point.method, point.noise))


def _columns(frontiers: Sequence[Frontier], view: str) -> dict[str, Any]:
    """Return the title and the number format of each column."""
    titles = dict(sweep_texts.HEADS)
    formats = {"noise": "%g", "step": "%g"}
    for name in ("accuracy", "low", "high", "reported"):
        formats[name] = "%.1f %%"
    for frontier in frontiers:
        titles[frontier.unit] = f"ε {privacy.PER[frontier.unit]}, {privacy.OBSERVERS[view]}"
        formats[frontier.unit] = "%.3g"
    titles["reported"] = sweep_texts.IN_PAPER
    columns: dict[str, Any] = {}
    for name, title in titles.items():
        if name in formats:
            columns[name] = st.column_config.NumberColumn(title, format=formats[name])
        else:
            columns[name] = title
    return columns


def _pick_row(rows: Sequence[tuple[Mapping[str, Any], PointSummary]]) -> None:
    chosen = session.recall("tradeoff-table", {}).get("selection", {}).get("rows", [])
    if chosen:
        _, point = rows[chosen[0]]
        tradeoff_requests.pick(point.method, point.noise)


def _chosen_point(
    view: TradeoffView, cells: Sequence[TradeoffCell], frontiers: Sequence[Frontier], settings: TradeoffSettings
) -> None:
    """Show the chosen point in words, and the button that opens its runs in Try."""
    chosen = _find_chosen(frontiers)
    if chosen is None:
        st.caption(sweep_texts.CHOOSE)
        return
    line, point = chosen
    ids = [result.point.id for result in point.results][: run_settings.SEEDS]
    runs = [run for run_id in ids for run in view.points if run.id == run_id]
    shipped = any(cell.shipped for cell in cells if cell.point.id in ids)
    with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-one"):
        description = html.escape(_describe(line, point, settings))
        st.html(f'<p class="ll-lead" role="status">{description}</p>', width="stretch")
        opened = st.button(sweep_texts.OPEN_LIVE if shipped else sweep_texts.OPEN, key="tradeoff-open")
    if not opened:
        return
    problem = services.error_of(lambda: tradeoff_requests.request_point(runs)) if shipped else ""
    if problem:
        messages.show("problem", problem)
        return
    url.open_screen("try", sweep_points.point_link(runs[0].spec.canonical(), ids))


def _find_chosen(frontiers: Sequence[Frontier]) -> tuple[TradeoffLine, PointSummary] | None:
    """Return the point that the visitor chose, with its line."""
    name, noise = session.recall("tradeoff-picked") or ("", None)
    for frontier in frontiers:
        for line in (*frontier.lines, *frontier.baselines):
            for point in line.points:
                if (point.method, point.noise) == (name, noise):
                    return line, point
    return None


def _describe(line: TradeoffLine, point: PointSummary, settings: TradeoffSettings) -> str:
    """Return the accuracy, the ε and the odds of a point in words. The seed with the largest ε decides."""
    view = settings.eyes
    largest = point.finite_epsilon(view)
    odds = privacy.odds(largest) if largest else ""
    return f"{sweep_texts.point(line.title, point, settings.own)}. {sweep_texts.largest_epsilon(point, view)}. {odds}"


def _guarantees(view: TradeoffView) -> None:
    """Show the guarantee of each method, and separately that at noise 0, since no noise gives no guarantee."""
    first = {(point.name, point.noise == 0): point for point in reversed(view.points)}
    for (name, without_noise), point in reversed(first.items()):
        guarantee = services.forecast_of(point.spec.canonical(), threads=1).guarantee
        title = view.titles.get(name, name)
        if without_noise:
            title = sweep_texts.at(title, point.noise)
        st.html(f'<h2 class="ll-title">{html.escape(title)}</h2>')
        card.guarantee_block({"status": guarantee.status, "reason": guarantee.reason} if guarantee else None)


def table_csv(cells: Sequence[TradeoffCell]) -> str:
    """Return a CSV file with one line for each run: its accuracy, and ε with its terms in every view."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    view_columns = [f"{column}-{view}" for view in privacy.VIEWS for column in VIEW_COLUMNS]
    writer.writerow((*RUN_COLUMNS, *view_columns))
    for cell in cells:
        result = cell.result
        if result is None:
            continue
        point = result.point
        place = (point.id, point.name, point.noise, point.step, point.seed, result.accuracy, result.personal)
        first = next(iter(result.epsilons.values()), None)
        shared = (first.adjacency, first.delta) if first else (None, None)
        values = []
        for view in privacy.VIEWS:
            terms = result.epsilons[view].json() if view in result.epsilons else {}
            values += [terms.get(column) for column in VIEW_COLUMNS]
        writer.writerow((*place, result.unit, *shared, *values))
    return file.getvalue()
