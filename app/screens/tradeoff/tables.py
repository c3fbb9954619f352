"""A table of a paper on the Trade-off screen: which one is asked, and what became of the paper's order."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app.screens.tradeoff import cells as tradeoff_cells
from app.screens.tradeoff import requests as tradeoff_requests
from app.screens.tradeoff import settings as tradeoff_settings
from app.screens.tradeoff.settings import TradeoffSettings
from app.session import session
from app.texts import sweep as sweep_texts
from engine.results.ranking import MethodScore, paper_order
from engine.results.summary import PointResult
from engine.specs import paper_tables

LEFT = "tradeoff-left"  # for each kind of question, its table and eyes when it was left


def first() -> str:
    """The table that is shown before another is chosen."""
    found = paper_tables.table(paper_tables.tables()[0])
    return _named(found, found.rows[-1].name, paper_tables.SCALES[0], paper_tables.READINGS[0])


def form(asked: TradeoffSettings) -> None:
    """Which table, which row, how large, and how the paper is read."""
    number, row, scale, reading = asked.table.split("/")
    found = paper_tables.table(number)
    titles = {name: sweep_texts.table(name, paper_tables.table(name).title) for name in paper_tables.tables()}
    rows = {one.name: one.title for one in found.rows}
    words_of = {name: found.readings[name].words for name in paper_tables.READINGS}
    _box("table", found.source, titles, number, _other)
    _box("row", sweep_texts.ROW, rows, row, lambda name: _named(found, name, scale, reading))
    _box("scale", sweep_texts.SCALE, sweep_texts.SCALES, scale, lambda name: _named(found, row, name, reading))
    _box("reading", sweep_texts.READING, words_of, reading, lambda name: _named(found, row, scale, name))
    # a box shows the beginning of its words alone
    said = f"Read {words_of[reading]}. {setting(asked)} {found.scales[scale]}"
    st.html(f'<p class="ll-why ll-faint">{html.escape(said)}</p>')


def _box(name: str, label: str, titles: Mapping[str, str], now: str, leads: Callable[[str], str]) -> None:
    st.selectbox(
        label, list(titles), format_func=lambda one: titles.get(one, one),
        **session.tie(f"tradeoff-paper-{name}", now, lambda chosen: choose(leads(chosen))),
    )  # fmt: skip


def _other(number: str) -> str:
    found = paper_tables.table(number)
    return _named(found, found.rows[0].name, paper_tables.SCALES[0], paper_tables.READINGS[0])


def _named(found: paper_tables.PaperTable, row: str, scale: str, reading: str) -> str:
    return "/".join((found.name, row, scale, reading))


def switch(paper: bool) -> None:
    """From a question of one's own to a paper's table or back: each is found as it was left."""
    now = tradeoff_requests.asked()
    left = {**session.recall(LEFT, {}), bool(now.table): (now.table, now.eyes)}
    session.remember(LEFT, left)
    table = first() if paper else ""
    usual = (table, _view(table) if paper else tradeoff_settings.OUTSIDER)
    table, eyes = left.get(paper, usual)
    tradeoff_requests.choose(table=table, eyes=eyes)


def choose(table: str) -> None:
    """Another table, row or size, seen by the same; another reading is about other eyes."""
    now = tradeoff_requests.asked()
    same = now.table.rpartition("/")[2] == table.rpartition("/")[2]
    tradeoff_requests.choose(table=table, eyes=now.eyes if same else _view(table))


def _view(table: str) -> str:
    number, _, _, reading = table.split("/")
    return paper_tables.table(number).readings[reading].view


def setting(asked: TradeoffSettings) -> str:
    """What the chosen row stands for here, and on which data."""
    number, row, scale, reading = asked.table.split("/")
    return next(one for one in paper_tables.table(number).rows if one.name == row).settings[scale].words[reading]


def reported(asked: TradeoffSettings) -> dict[tuple[str, float | None], float]:
    """What the paper has for each column at each noise, in %."""
    return (
        {(cell.label, cell.noise): cell.reported for cell in tradeoff_settings.cells(asked.table)}
        if asked.table
        else {}
    )


def ranks(asked: TradeoffSettings, cells: Sequence[tradeoff_cells.TradeoffCell]) -> list[tuple[float, str]]:
    """What became of the paper's order at each noise, in words."""
    there = reported(asked)
    found: dict[tuple[str, float | None], list[PointResult]] = {key: [] for key in there}
    for cell in cells:
        if cell.result and (key := (cell.point.name, cell.point.noise)) in found:
            found[key].append(cell.result)
    told = []
    for noise in sorted({noise for _, noise in there if noise is not None}):
        standing = [
            MethodScore(label, {one.point.seed: one.accuracy for one in results}, there[label, at] / 100)
            for (label, at), results in found.items()
            if at == noise
        ]
        if rank := paper_order(standing):
            told.append((noise, rank.words()))
    return told
