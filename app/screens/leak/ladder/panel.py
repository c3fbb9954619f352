"""Who sees what: one picture and one protection, attacked from four places, beside the same without protection."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app.screens.leak import requests as leak_requests
from app.screens.leak import results as leak_results
from app.screens.leak import series
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import GridColumn, LeakSettings
from app.session import run_settings, services
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from app.texts.attack_series import ShownEpsilon
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell
from engine.specs.attack_grid import NONE, RequestedAttack

if TYPE_CHECKING:
    from engine.training.forecast import Forecast

VIEWS = ("server", "aggregate", "client", "outsider")  # the most seeing first
CSS = """
<style>
.ll-rungs { display: grid; grid-template-columns: repeat(4, minmax(130px, 1fr)); gap: .4rem 1.4rem; max-width: 1040px; }
.ll-rungs figure { margin: 0; min-width: 0; }
.ll-rungs img, .ll-rungs .ll-blank { width: 100%; max-width: 170px; aspect-ratio: 1; image-rendering: pixelated;
  background: var(--hair); display: grid; place-items: center; font-size: .85rem; color: var(--faint); }
.ll-rungs figcaption { font-size: .9rem; font-variant-numeric: tabular-nums; }
.ll-rungs b, .ll-rungs span { display: block; }
.ll-rungs .ll-number { font-size: 1.05rem; font-weight: 600; margin-top: .2rem; }
.ll-row { margin: .8rem 0 .3rem; font-weight: 600; }
@media (max-width: 640px) { .ll-rungs { grid-template-columns: repeat(2, minmax(130px, 1fr)); } }
</style>
"""


@dataclass(frozen=True)
class LadderCell:
    """One adversary against one protection."""

    view: str
    cell: AttackCell
    absent: str  # why there is no such adversary here
    promise: str  # ε of this view with its words


@dataclass(frozen=True)
class LadderRow:
    """One protection, seen from all four places."""

    column: GridColumn
    asked: tuple[RequestedAttack, ...]
    promise: Forecast


def loudest(columns: Sequence[GridColumn]) -> str:
    """The protection with the most noise; the last where none has any."""
    others = [one for one in columns if one.key != NONE]
    return max(others, key=lambda one: one.noise or 0.0).key if any(one.noise for one in others) else others[-1].key


def rows(leak: LeakSettings, key: str, attack: str) -> list[LadderRow]:
    """The control, and the protection that was chosen."""
    columns = [one for one in leak_settings.columns(leak) if one.key in (NONE, key)]
    found = []
    for column in columns:
        narrow = replace(leak, against=(column.key,), attacks=(attack,))
        asked = [
            one for view in VIEWS for one in leak_settings.cells(replace(narrow, eyes=view)) if one.column == column.key
        ]
        found.append(
            LadderRow(column, tuple(leak_requests.fitted(asked)), services.forecast_of(column.spec.canonical()))
        )
    return found


def panel(leak: LeakSettings) -> None:
    series.title(series_texts.LADDER)
    attacks, columns = series.attacks(leak), leak_settings.columns(leak)
    if not attacks:
        series.problem(series_texts.NO_ATTACK)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="ladder-of"):
        key = _protection(columns)
        attack = st.selectbox(
            series_texts.BY, attacks, index=attacks.index(series.steady(attacks)), width=280,
            format_func=run_settings.attack_title, key=f"ladder-attack:{','.join(attacks)}",
        )  # fmt: skip
    found = rows(leak, key, attack)
    asked = [one for row in found for one in row.asked]
    moving = any(cell.moving for cell in leak_results.read(asked))
    series.followed(lambda: _drawn(found, asked), moving)


def _protection(columns: Sequence[GridColumn]) -> str:
    titles = {one.key: one.title for one in columns if one.key != NONE}
    if not titles:
        st.caption(series_texts.ONLY_CONTROL)
        return NONE
    keys = list(titles)
    chosen = st.selectbox(
        series_texts.PROTECTION, keys, index=keys.index(loudest(columns)), format_func=titles.__getitem__,
        width=280, key=f"ladder-column:{','.join(keys)}",
    )  # fmt: skip
    return str(chosen)


def _drawn(found: Sequence[LadderRow], asked: Sequence[RequestedAttack]) -> Sequence[AttackCell]:
    cells = leak_results.read(asked)
    series.bar("ladder", asked, cells, series_texts.ladder)
    parts = [CSS, _heads()]
    for row in found:
        parts.append(f'<p class="ll-row">{html.escape(row.column.title)}</p><div class="ll-rungs">')
        parts += [_figure(one, row.column.title) for one in rungs(row, leak_results.read(row.asked))]
        parts.append("</div>")
    st.html("".join(parts))
    plain = next((value for cell in cells if (value := cell.trivial(0)) is not None), None)
    if plain is not None:
        told = series_texts.GREY.format(value=attack_texts.decibel(plain))
        series.why(f"{told} {attack_texts.NO_PROOF}")
    series.failures([cell for cell in cells if cell.id])
    return cells


def rungs(row: LadderRow, cells: Sequence[AttackCell]) -> list[LadderCell]:
    absent: Mapping[str, str] = row.promise.guarantee.absent if row.promise.guarantee else {}
    answers: dict[str, ShownEpsilon] = {one.view: one for one in row.promise.answers}
    return [
        LadderCell(view, cell, absent.get(view, ""), series_texts.epsilon(answers.get(view)))
        for view, cell in zip(VIEWS, cells, strict=True)
    ]


def _heads() -> str:
    """Who they are and what they hold: said once, above both rows."""
    heads = [
        f"<div><b>{html.escape(series_texts.ADVERSARIES[view])}</b>"
        f'<span class="ll-faint">{html.escape(series_texts.HOLDS[view])}</span></div>'
        for view in VIEWS
    ]
    return f'<div class="ll-rungs">{"".join(heads)}</div>'


def _figure(one: LadderCell, column: str) -> str:
    if one.absent or (one.cell.problem and not one.cell.id):
        why = html.escape(one.absent or one.cell.problem)
        return f'<figure><div class="ll-blank">{series_texts.NOT_HERE}</div><figcaption>{why}</figcaption></figure>'
    cell, said = one.cell, attack_texts.state(one.cell)
    value, shown = cell.psnr(0), series.last(cell)
    leaking = cell.done and (cell.gain(0) or 0.0) > attack_summary.BETTER
    alt = html.escape(series_texts.rung(one.view, said, value, column), quote=True)
    blank = f'<div class="ll-blank">{series_texts.EMPTY}</div>'
    picture = f'<img alt="{alt}" src="data:image/png;base64,{shown}">' if shown else blank
    number = f'<b class="ll-number{" ll-leaking" if leaking else ""}">{attack_texts.decibel(value)}</b>'
    tail = f"{said} · {attack_texts.LEAKS}" if leaking else said
    caption = f'{number}<span class="ll-faint">{html.escape(tail)}</span><span>{html.escape(one.promise)}</span>'
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
