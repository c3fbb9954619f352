"""The ladder: one picture, attacked from four views, under the baseline and under one protection."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app.batch import attack_cells
from app.screens.leak import columns as leak_columns
from app.screens.leak import series
from app.screens.leak.columns import GridColumn
from app.screens.leak.settings import LeakSettings
from app.session import run_settings, services
from app.texts import attack_series as series_texts
from app.texts import privacy, verdicts
from engine.epsilon import Epsilon
from engine.results.attack_summary import AttackCell
from engine.results.verdict import NOT_RECOGNISED, Verdict
from engine.specs import attack_series
from engine.specs.attack_grid import NONE, RequestedAttack
from engine.specs.attack_series import VIEWS

if TYPE_CHECKING:
    from engine.training.forecast import Forecast

CSS = """
<style>
.ll-rungs { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .2rem 1.4rem; max-width: 1040px; }
.ll-rungs figure { margin: 0 0 .8rem; min-width: 0; display: grid; grid-row: span 3; grid-template-rows: subgrid; }
.ll-rungs img, .ll-rungs .ll-blank { width: 100%; max-width: 200px; aspect-ratio: 1; image-rendering: pixelated;
  background: var(--hair); display: grid; place-items: center; font-size: .85rem; color: var(--faint); }
.ll-rungs .ll-low { aspect-ratio: 3; }
.ll-rungs figcaption, .ll-rungs header { font-size: .9rem; font-variant-numeric: tabular-nums; }
.ll-rungs b, .ll-rungs span { display: block; text-wrap: balance; }
.ll-rungs .ll-word { font-size: 1.15rem; font-weight: 600; line-height: 1.25; margin: .2rem 0; }
.ll-word::first-letter, .ll-row::first-letter { text-transform: uppercase; }
.ll-row { margin: .8rem 0 .3rem; font-weight: 600; }
@media (max-width: 640px) { .ll-rungs { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
</style>
"""


@dataclass(frozen=True)
class LadderCell:
    """One view of one protection."""

    view: str
    cell: AttackCell
    absent: str  # the reason why this view does not exist
    epsilon: Epsilon | None


@dataclass(frozen=True)
class LadderRow:
    """One protection in all four views."""

    column: GridColumn
    requests: tuple[RequestedAttack, ...]
    forecast: Forecast


def most_noise(columns: Sequence[GridColumn]) -> str:
    """Return the key of the protection with the most noise, or of the last if none has noise."""
    protected = [column for column in columns if column.key != NONE]
    if not any(column.noise for column in protected):
        return protected[-1].key
    return max(protected, key=lambda column: column.noise or 0.0).key


def rows(leak: LeakSettings, key: str, attack: str) -> list[LadderRow]:
    """Return the baseline and the chosen protection."""
    ladder_rows = []
    for column in leak_columns.columns(leak):
        if column.key not in (NONE, key):
            continue
        requests = attack_cells.with_refusals(attack_series.ladder_requests(leak.grid, column.key, attack))
        forecast = services.forecast_of(column.spec.canonical())
        ladder_rows.append(LadderRow(column, tuple(requests), forecast))
    return ladder_rows


def panel(leak: LeakSettings) -> None:
    series.title(series_texts.LADDER)
    attacks = series.attacks(leak)
    columns = leak_columns.columns(leak)
    if not attacks:
        series.problem(series_texts.NO_ATTACK)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="ladder-of"):
        key = _protection(columns)
        attack = st.selectbox(
            series_texts.BY, attacks, index=attacks.index(attack_series.main_attack(attacks)), width=280,
            format_func=run_settings.attack_title, key=f"ladder-attack:{','.join(attacks)}",
        )  # fmt: skip
    ladder_rows = rows(leak, key, attack)
    requests = [request for row in ladder_rows for request in row.requests]
    moving = any(cell.moving for cell in attack_cells.read_cells(requests))
    series.draw_until_done(lambda: _draw(ladder_rows, requests), moving)


def _protection(columns: Sequence[GridColumn]) -> str:
    titles = {column.key: column.title for column in columns if column.key != NONE}
    if not titles:
        st.caption(series_texts.ONLY_BASELINE)
        return NONE
    keys = list(titles)
    chosen = st.selectbox(
        series_texts.PROTECTION, keys, index=keys.index(most_noise(columns)), format_func=titles.__getitem__,
        width=280, key=f"ladder-column:{','.join(keys)}",
    )  # fmt: skip
    return str(chosen)


def _draw(ladder_rows: Sequence[LadderRow], requests: Sequence[RequestedAttack]) -> Sequence[AttackCell]:
    cells = attack_cells.read_cells(requests)
    series.progress_bar("ladder", requests, series_texts.run)
    parts = [CSS]
    words: dict[str, dict[str, Verdict]] = {}
    promised = False
    for row in ladder_rows:
        split = f' <span class="ll-faint">{html.escape(row.column.split)}</span>' if row.column.split else ""
        parts.append(f'<p class="ll-row">{html.escape(row.column.title)}{split}</p><div class="ll-rungs">')
        ladder = ladder_cells(row, attack_cells.read_cells(row.requests))
        parts += [_figure(ladder_cell, row.column.title) for ladder_cell in ladder]
        parts.append("</div>")
        words[row.column.title] = words_of(ladder)
        promised = promised or any(series_texts.promise(rung.epsilon)[0] for rung in ladder)
    st.html("".join(parts))
    if all(cell.done for cell in cells if cell.id):
        series.announce(series_texts.observed(words, promised))
    series.failures([cell for cell in cells if cell.id])
    return cells


def ladder_cells(row: LadderRow, cells: Sequence[AttackCell]) -> list[LadderCell]:
    """Return the cells of one row with the ε of each view, or the reason why a view does not exist."""
    absent: Mapping[str, str] = row.forecast.guarantee.absent if row.forecast.guarantee else {}
    answers: dict[str, Epsilon] = {answer.view: answer for answer in row.forecast.answers}
    ladder = []
    for view, cell in zip(VIEWS, cells, strict=True):
        ladder.append(LadderCell(view, cell, absent.get(view, ""), answers.get(view)))
    return ladder


def words_of(ladder: Sequence[LadderCell]) -> dict[str, Verdict]:
    """Return the verdict of each view that exists. An attack without a guess brought nothing back."""
    words: dict[str, Verdict] = {}
    for ladder_cell in ladder:
        if ladder_cell.cell.done and not ladder_cell.absent:
            words[ladder_cell.view] = ladder_cell.cell.verdict(0) or NOT_RECOGNISED
    return words


def _figure(ladder_cell: LadderCell, column: str) -> str:
    """Return one observer: its name, what it sees, its picture, the verdict and its ε."""
    cell = ladder_cell.cell
    view = ladder_cell.view
    sees = html.escape(privacy.OBSERVER_SEES[view])
    head = f'<header><b>{series_texts.ladder_title(view)}</b><span class="ll-faint">{sees}</span></header>'
    if ladder_cell.absent or (cell.problem and not cell.id):
        reason = html.escape(ladder_cell.absent or cell.problem)
        blank = f'<div class="ll-blank ll-low">{series_texts.NOT_HERE}</div>'
        return f"<figure>{head}{blank}<figcaption>{reason}</figcaption></figure>"
    state = verdicts.caption(cell, 0) if cell.status else ""
    style = "ll-leaking" if cell.leaks(0) else "ll-ink" if cell.done else "ll-faint"
    caption = f'<b class="ll-word {style}">{html.escape(state)}</b>{_promise(ladder_cell.epsilon)}'
    return f"<figure>{head}{_picture(ladder_cell, state, column)}<figcaption>{caption}</figcaption></figure>"


def _promise(answer: Epsilon | None) -> str:
    text, size = series_texts.promise(answer)
    sized = f'<span class="ll-{size.side}">{size.sign} {size.word}</span>'
    return f"<span>{html.escape(text)}</span>{sized}" if text else sized


def _picture(ladder_cell: LadderCell, state: str, column: str) -> str:
    cell = ladder_cell.cell
    png = series.last_guess(cell)
    if not png:
        style = "ll-blank" if cell.status else "ll-blank ll-low"
        return f'<div class="{style}">{series_texts.EMPTY}</div>'
    alt = html.escape(series_texts.ladder_alt(ladder_cell.view, state, column), quote=True)
    psnr = cell.psnr(0)
    score = "" if psnr is None else html.escape(series_texts.score(psnr, cell.trivial(0)), quote=True)
    return f'<img alt="{alt}" title="{score}" src="data:image/png;base64,{png}">'
