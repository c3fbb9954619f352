"""A paper's table on the Trade-off screen: the choice of the table, and our ranking of methods next to the paper's."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import sweep_points
from app.screens.tradeoff.requests import STATE
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import session
from app.texts import sweep as sweep_texts
from engine.results.ranking import MethodScore, paper_order
from engine.results.summary import PointResult
from engine.specs import paper_tables

LEFT = "tradeoff-left"  # session key of the last table and view, for each kind of sweep


def default_table() -> str:
    """Return the table that is shown first."""
    table = paper_tables.table(paper_tables.tables()[0])
    return _table_name(table, table.rows[-1].name, paper_tables.SCALES[0], paper_tables.READINGS[0])


def form(settings: TradeoffSettings) -> None:
    """Ask for the table, its row, the scale and the reading of the paper."""
    number, row, scale, reading = settings.table.split("/")
    table = paper_tables.table(number)
    tables = {name: sweep_texts.table(name, paper_tables.table(name).title) for name in paper_tables.tables()}
    rows = {paper_row.name: paper_row.title for paper_row in table.rows}
    readings = {name: table.readings[name].words for name in paper_tables.READINGS}
    _selectbox("table", table.source, tables, number, _first_row)
    _selectbox("row", sweep_texts.ROW, rows, row, lambda name: _table_name(table, name, scale, reading))
    _selectbox(
        "scale", sweep_texts.SCALE, sweep_texts.SCALES, scale, lambda name: _table_name(table, row, name, reading)
    )
    _selectbox("reading", sweep_texts.READING, readings, reading, lambda name: _table_name(table, row, scale, name))
    # A select box cuts long texts, so the whole reading is repeated here.
    summary = f"Read {readings[reading]}. {row_setting(settings)} {table.scales[scale]}"
    st.html(f'<p class="ll-why ll-faint">{html.escape(summary)}</p>')


def _selectbox(name: str, label: str, titles: Mapping[str, str], now: str, table_of: Callable[[str], str]) -> None:
    """Draw a select box. `table_of` returns the table that a choice opens."""
    st.selectbox(
        label, list(titles), format_func=lambda key: titles.get(key, key),
        **session.bind(f"tradeoff-paper-{name}", now, lambda chosen: choose(table_of(chosen))),
    )  # fmt: skip


def _first_row(number: str) -> str:
    table = paper_tables.table(number)
    return _table_name(table, table.rows[0].name, paper_tables.SCALES[0], paper_tables.READINGS[0])


def _table_name(table: paper_tables.PaperTable, row: str, scale: str, reading: str) -> str:
    return "/".join((table.name, row, scale, reading))


def switch(paper: bool) -> None:
    """Switch between a paper's table and your own sweep. Each opens with its last table."""
    now = STATE.current()
    left = {**session.recall(LEFT, {}), bool(now.table): now.table}
    session.remember(LEFT, left)
    STATE.choose(table=left.get(paper) or (default_table() if paper else ""))


def choose(table: str) -> None:
    """Choose another table, row, scale or reading."""
    STATE.choose(table=table)


def row_setting(settings: TradeoffSettings) -> str:
    """Return what runs here for the chosen row, and what the paper leaves open, in words."""
    number, row, scale, reading = settings.table.split("/")
    paper_row = next(paper_row for paper_row in paper_tables.table(number).rows if paper_row.name == row)
    return paper_row.settings[scale].words[reading]


def reported(settings: TradeoffSettings) -> dict[tuple[str, float | None], float]:
    """Return the accuracy that the paper reports, in %, by column and noise."""
    if not settings.table:
        return {}
    return {(cell.label, cell.noise): cell.reported for cell in sweep_points.cells(settings.table)}


def rankings(settings: TradeoffSettings, cells: Sequence[tradeoff_cells.TradeoffCell]) -> list[tuple[float, str]]:
    """Compare our ranking of methods with the paper's, in words for each noise."""
    paper = reported(settings)
    results: dict[tuple[str, float | None], list[PointResult]] = {key: [] for key in paper}
    for cell in cells:
        key = (cell.point.name, cell.point.noise)
        if cell.result and key in results:
            results[key].append(cell.result)
    sentences = []
    for noise in sorted({noise for _, noise in paper if noise is not None}):
        scores = []
        for (label, column_noise), column_results in results.items():
            if column_noise == noise:
                accuracies = {result.point.seed: result.accuracy for result in column_results}
                scores.append(MethodScore(label, accuracies, paper[label, noise] / 100))
        order = paper_order(scores)
        if order:
            sentences.append((noise, order.words()))
    return sentences
