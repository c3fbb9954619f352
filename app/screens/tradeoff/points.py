"""Beside the frontier: every point in a table, the chosen one in words, what methods promise, what to take away."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.charts.base import Panel
from app.charts.tradeoff import Frontier
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff import tables as tradeoff_tables
from app.screens.tradeoff.cells import TradeoffCell, TradeoffView
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import messages, run_settings, services, session, url
from app.texts import privacy
from app.texts import sweep as sweep_texts
from app.widgets import card
from app.widgets import chart as chart_widget
from engine.results.summary import PointSummary

OF_RUN = (
    "run", "method", "noise", "server-step", "seed", "accuracy", "accuracy-personal", "unit", "adjacency", "delta",
)  # fmt: skip
BY_VIEW = ("epsilon", "accountant", "sampling", "bound", "reason")  # in the file of all runs


def details(
    view: TradeoffView,
    cells: Sequence[TradeoffCell],
    found: Sequence[Frontier],
    asked: TradeoffSettings,
    panels: Sequence[Panel[Any]],
) -> None:
    st.html(f'<h2 class="ll-title">{sweep_texts.TABLE}</h2>')
    rows = table(found, asked)
    st.dataframe(
        [row for row, _ in rows], hide_index=True, alt=sweep_texts.TABLE_ALT, key="tradeoff-table",
        column_config=_columns(found, asked.eyes), on_select=lambda: _row_picked(rows), selection_mode="single-row",
        placeholder="–",
    )  # fmt: skip
    _one(view, cells, found, asked)
    _paper(asked, cells)
    with st.container(horizontal=True), st.popover(sweep_texts.SHARE):
        st.markdown(sweep_texts.SHARE_TEXT)
        st.code(url.here(), language=None, wrap_lines=True)
    with st.expander(sweep_texts.PROMISES):
        _promises(view)
    card.not_covered()
    with st.expander(sweep_texts.AWAY):
        st.code(tradeoff_settings.command(asked), language="bash", wrap_lines=True)
        st.download_button(
            "Download CSV",
            partial(table_csv, cells),
            "leaklens-trade-off.csv",
            "text/csv",
            key="csv",
            on_click="ignore",
        )
        chart_widget.to_take_away(panels)


def _paper(asked: TradeoffSettings, cells: Sequence[TradeoffCell]) -> None:
    """On which data the paper's numbers stand beside these, and whether its order is found here."""
    if asked.table:
        messages.say("note", f"{sweep_texts.BESIDE_PAPER} {tradeoff_tables.setting(asked)}")
    if told := tradeoff_tables.ranks(asked, cells):
        rows = [f"<p><b>{sweep_texts.noise(noise).capitalize()}.</b> {html.escape(said)}</p>" for noise, said in told]
        st.html(f'<h2 class="ll-title">{html.escape(sweep_texts.RANKS)}</h2>{"".join(rows)}')


def table(found: Sequence[Frontier], asked: TradeoffSettings) -> list[tuple[dict[str, Any], PointSummary]]:
    """A line for each point of the picture, and the point itself; ε in a column of its own for each unit."""
    rows, reported = [], tradeoff_tables.reported(asked)
    plain = {line.title: line for one in found for line in one.plain}
    for unit, line in [
        *((one.unit, line) for one in found for line in one.lines),
        *(("", one) for one in plain.values()),
    ]:
        for spot in line.spots:
            values = [100 * value for value in spot.scores(asked.own)]
            row = {
                "method": line.title, "noise": spot.noise, "step": spot.step,
                "accuracy": 100 * spot.score(asked.own), "low": min(values), "high": max(values), "seeds": len(values),
                **{one.unit: spot.epsilon.get(asked.eyes) if one.unit == unit else None for one in found},
                **({"reported": _reported(spot, reported, asked.own)} if reported else {}),
            }  # fmt: skip
            rows.append((row, spot))
    return rows


def _reported(spot: PointSummary, reported: Mapping[tuple[str, float | None], float], own: bool) -> float | None:
    """The paper's number; beside the clients' own models it would stand beside something else."""
    return None if own and spot.personals else reported.get((spot.method, spot.noise))


def _columns(found: Sequence[Frontier], view: str) -> dict[str, Any]:
    column = st.column_config.NumberColumn
    units = {one.unit: f"ε {privacy.PER[one.unit]}, {privacy.OBSERVERS[view]}" for one in found}
    percent = dict.fromkeys(("accuracy", "low", "high", "reported"), "%.1f %%")
    shapes = {"noise": "%g", "step": "%g", **percent, **dict.fromkeys(units, "%.3g")}
    heads = {**sweep_texts.HEADS, **units, "reported": sweep_texts.IN_PAPER}
    return {name: column(head, format=shapes[name]) if name in shapes else head for name, head in heads.items()}


def _row_picked(rows: Sequence[tuple[Mapping[str, Any], PointSummary]]) -> None:
    chosen = session.recall("tradeoff-table", {}).get("selection", {}).get("rows", [])
    if chosen:
        spot = rows[chosen[0]][1]
        tradeoff_requests.pick(spot.method, spot.noise)


def _one(view: TradeoffView, cells: Sequence[TradeoffCell], found: Sequence[Frontier], asked: TradeoffSettings) -> None:
    """The point that was chosen, in words, and the way to its runs."""
    name, noise = session.recall("tradeoff-picked", ("", None))
    lines = [line for one in found for line in (*one.lines, *one.plain)]
    here = [(line, spot) for line in lines for spot in line.spots if (spot.method, spot.noise) == (name, noise)]
    if not here:
        st.caption(sweep_texts.CHOOSE)
        return
    line, spot = here[0]
    dearest = spot.dearest(asked.eyes)
    odds = privacy.odds(asked.eyes, spot.unit or "user", dearest.epsilon[asked.eyes]) if dearest else ""
    told = f"{sweep_texts.point(line.title, spot, asked.own)}. {sweep_texts.dearest(spot, asked.eyes)}. {odds}"
    with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-one"):
        st.html(f'<p class="ll-said" role="status">{html.escape(told)}</p>', width="stretch")
        ids = [one.point.id for one in spot.results][: run_settings.SEEDS]
        points = [point for one in ids for point in view.points if point.id == one]
        shipped = any(cell.shipped for cell in cells if cell.point.id in ids)
        opened = st.button(sweep_texts.OPEN_LIVE if shipped else sweep_texts.OPEN, key="tradeoff-open")
    if opened:
        if problem := services.attempt(lambda: tradeoff_requests.ask_at_once(points)) if shipped else "":
            messages.say("problem", problem)
            return
        url.leave("lab", tradeoff_settings.of_spot(points[0].spec.canonical(), ids))


def _promises(view: TradeoffView) -> None:
    first = {(point.name, point.noise == 0): point for point in reversed(view.points)}  # no noise, no promise
    for (name, bare), point in reversed(first.items()):
        told = services.forecast_of(point.spec.canonical(), threads=1).guarantee
        title = view.titles.get(name, name)
        title = sweep_texts.at(title, point.noise) if bare else title
        st.html(f'<h2 class="ll-title">{html.escape(title)}</h2>')
        card.promise({"status": told.status, "reason": told.reason} if told else None)


def table_csv(cells: Sequence[TradeoffCell]) -> str:
    """Every run, one a line, with every ε and the words it stands on."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*OF_RUN, *(f"{what}-{view}" for view in privacy.VIEWS for what in BY_VIEW)))
    for cell in cells:
        if (one := cell.result) is None:
            continue
        place = one.point
        where = (place.id, place.name, place.noise, place.step, place.seed, one.accuracy, one.personal)
        told = (one.epsilon, one.accountant, one.sampling, one.bound, one.why)
        prices = [by_view.get(view) for view in privacy.VIEWS for by_view in told]
        writer.writerow((*where, one.unit, one.adjacency, one.delta, *prices))
    return out.getvalue()
