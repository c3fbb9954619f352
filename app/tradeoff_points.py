"""Beside the frontier: every point in a table, the chosen one in words, what methods promise, what to take away."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app import (
    card,
    charts,
    notes,
    question,
    state,
    tradeoff,
    tradeoff_orders,
    tradeoff_tables,
    words,
    words_tradeoff,
)
from app.panels.base import Panel
from app.panels.tradeoff import Frontier
from app.tradeoff import Tradeoff
from app.tradeoff_cells import Cell, View
from engine.results.summary import Spot

OF_RUN = (
    "run", "method", "noise", "server-step", "seed", "accuracy", "accuracy-personal", "unit", "adjacency", "delta",
)  # fmt: skip
BY_VIEW = ("epsilon", "accountant", "sampling", "bound", "reason")  # in the file of all runs


def details(
    view: View, cells: Sequence[Cell], found: Sequence[Frontier], asked: Tradeoff, panels: Sequence[Panel[Any]]
) -> None:
    st.html(f'<h2 class="ll-title">{words_tradeoff.TABLE}</h2>')
    rows = table(found, asked)
    st.dataframe(
        [row for row, _ in rows], hide_index=True, alt=words_tradeoff.TABLE_ALT, key="tradeoff-table",
        column_config=_columns(found, asked.eyes), on_select=lambda: _row_picked(rows), selection_mode="single-row",
        placeholder="–",
    )  # fmt: skip
    _one(view, cells, found, asked)
    _paper(asked, cells)
    with st.container(horizontal=True), st.popover(words_tradeoff.SHARE):
        st.markdown(words_tradeoff.SHARE_TEXT)
        st.code(state.here(), language=None, wrap_lines=True)
    with st.expander(words_tradeoff.PROMISES):
        _promises(view)
    card.not_covered()
    with st.expander(words_tradeoff.AWAY):
        st.code(tradeoff.command(asked), language="bash", wrap_lines=True)
        st.download_button(
            "Download CSV",
            partial(table_csv, cells),
            "leaklens-trade-off.csv",
            "text/csv",
            key="csv",
            on_click="ignore",
        )
        charts.to_take_away(panels)


def _paper(asked: Tradeoff, cells: Sequence[Cell]) -> None:
    """On which data the paper's numbers stand beside these, and whether its order is found here."""
    if asked.table:
        notes.say("note", f"{words_tradeoff.BESIDE_PAPER} {tradeoff_tables.setting(asked)}")
    if told := tradeoff_tables.ranks(asked, cells):
        rows = [
            f"<p><b>{words_tradeoff.noise(noise).capitalize()}.</b> {html.escape(said)}</p>" for noise, said in told
        ]
        st.html(f'<h2 class="ll-title">{html.escape(words_tradeoff.RANKS)}</h2>{"".join(rows)}')


def table(found: Sequence[Frontier], asked: Tradeoff) -> list[tuple[dict[str, Any], Spot]]:
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


def _reported(spot: Spot, reported: Mapping[tuple[str, float | None], float], own: bool) -> float | None:
    """The paper's number; beside the clients' own models it would stand beside something else."""
    return None if own and spot.personals else reported.get((spot.method, spot.noise))


def _columns(found: Sequence[Frontier], view: str) -> dict[str, Any]:
    column = st.column_config.NumberColumn
    units = {one.unit: f"ε {words.PER[one.unit]}, {words.OBSERVERS[view]}" for one in found}
    percent = dict.fromkeys(("accuracy", "low", "high", "reported"), "%.1f %%")
    shapes = {"noise": "%g", "step": "%g", **percent, **dict.fromkeys(units, "%.3g")}
    heads = {**words_tradeoff.HEADS, **units, "reported": words_tradeoff.IN_PAPER}
    return {name: column(head, format=shapes[name]) if name in shapes else head for name, head in heads.items()}


def _row_picked(rows: Sequence[tuple[Mapping[str, Any], Spot]]) -> None:
    chosen = state.recall("tradeoff-table", {}).get("selection", {}).get("rows", [])
    if chosen:
        spot = rows[chosen[0]][1]
        tradeoff_orders.pick(spot.method, spot.noise)


def _one(view: View, cells: Sequence[Cell], found: Sequence[Frontier], asked: Tradeoff) -> None:
    """The point that was chosen, in words, and the way to its runs."""
    name, noise = state.recall("tradeoff-picked", ("", None))
    lines = [line for one in found for line in (*one.lines, *one.plain)]
    here = [(line, spot) for line in lines for spot in line.spots if (spot.method, spot.noise) == (name, noise)]
    if not here:
        st.caption(words_tradeoff.CHOOSE)
        return
    line, spot = here[0]
    dearest = spot.dearest(asked.eyes)
    odds = words.odds(asked.eyes, spot.unit or "user", dearest.epsilon[asked.eyes]) if dearest else ""
    told = f"{words_tradeoff.point(line.title, spot, asked.own)}. {words_tradeoff.dearest(spot, asked.eyes)}. {odds}"
    with st.container(horizontal=True, vertical_alignment="center", key="tradeoff-one"):
        st.html(f'<p class="ll-said" role="status">{html.escape(told)}</p>', width="stretch")
        ids = [one.point.id for one in spot.results][: question.SEEDS]
        points = [point for one in ids for point in view.points if point.id == one]
        shipped = any(cell.shipped for cell in cells if cell.point.id in ids)
        opened = st.button(words_tradeoff.OPEN_LIVE if shipped else words_tradeoff.OPEN, key="tradeoff-open")
    if opened:
        if problem := state.attempt(lambda: tradeoff_orders.ask_at_once(points)) if shipped else "":
            notes.say("problem", problem)
            return
        state.leave("lab", tradeoff.of_spot(points[0].spec.canonical(), ids))


def _promises(view: View) -> None:
    first = {(point.name, point.noise == 0): point for point in reversed(view.points)}  # no noise, no promise
    for (name, bare), point in reversed(first.items()):
        told = state.forecast_of(point.spec.canonical(), threads=1).guarantee
        title = view.titles.get(name, name)
        title = words_tradeoff.at(title, point.noise) if bare else title
        st.html(f'<h2 class="ll-title">{html.escape(title)}</h2>')
        card.promise({"status": told.status, "reason": told.reason} if told else None)


def table_csv(cells: Sequence[Cell]) -> str:
    """Every run, one a line, with every ε and the words it stands on."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*OF_RUN, *(f"{what}-{view}" for view in words.VIEWS for what in BY_VIEW)))
    for cell in cells:
        if (one := cell.result) is None:
            continue
        place = one.point
        where = (place.id, place.name, place.noise, place.step, place.seed, one.accuracy, one.personal)
        told = (one.epsilon, one.accountant, one.sampling, one.bound, one.why)
        prices = [by_view.get(view) for view in words.VIEWS for by_view in told]
        writer.writerow((*where, one.unit, one.adjacency, one.delta, *prices))
    return out.getvalue()
