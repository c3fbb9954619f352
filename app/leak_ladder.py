"""Who sees what: one picture and one protection, attacked from four places, beside the same without protection."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app import leak_orders, leak_series, leak_watch, leaks, state, words_leak, words_leak_more
from app.leak_cells import Cell
from app.leaks import NONE, Asked, Column, Leak
from app.words_leak_more import Answer

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
class Rung:
    """One adversary against one protection."""

    view: str
    cell: Cell
    absent: str  # why there is no such adversary here
    promise: str  # ε of this view with its words


@dataclass(frozen=True)
class Row:
    """One protection, seen from all four places."""

    column: Column
    asked: tuple[Asked, ...]
    promise: Forecast


def loudest(columns: Sequence[Column]) -> str:
    """The protection with the most noise; the last where none has any."""
    others = [one for one in columns if one.key != NONE]
    return max(others, key=lambda one: one.noise or 0.0).key if any(one.noise for one in others) else others[-1].key


def rows(leak: Leak, key: str, attack: str) -> list[Row]:
    """The control, and the protection that was chosen."""
    columns = [one for one in leaks.columns(leak) if one.key in (NONE, key)]
    found = []
    for column in columns:
        narrow = replace(leak, against=(column.key,), attacks=(attack,))
        asked = [one for view in VIEWS for one in leaks.cells(replace(narrow, eyes=view)) if one.column == column.key]
        found.append(Row(column, tuple(leak_orders.fitted(asked)), state.forecast_of(column.spec.canonical())))
    return found


def panel(leak: Leak) -> None:
    leak_series.title(words_leak_more.LADDER)
    attacks, columns = leak_series.attacks(leak), leaks.columns(leak)
    if not attacks:
        leak_series.problem(words_leak_more.NO_ATTACK)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="ladder-of"):
        key = _protection(columns)
        attack = st.selectbox(
            words_leak_more.BY, attacks, index=attacks.index(leak_series.steady(attacks)), width=280,
            format_func=leaks.attack_title, key=f"ladder-attack:{','.join(attacks)}",
        )  # fmt: skip
    found = rows(leak, key, attack)
    asked = [one for row in found for one in row.asked]
    moving = any(cell.moving for cell in leak_watch.read(asked))
    leak_series.followed(lambda: _drawn(found, asked), moving)


def _protection(columns: Sequence[Column]) -> str:
    titles = {one.key: one.title for one in columns if one.key != NONE}
    if not titles:
        st.caption(words_leak_more.ONLY_CONTROL)
        return NONE
    keys = list(titles)
    chosen = st.selectbox(
        words_leak_more.PROTECTION, keys, index=keys.index(loudest(columns)), format_func=titles.__getitem__,
        width=280, key=f"ladder-column:{','.join(keys)}",
    )  # fmt: skip
    return str(chosen)


def _drawn(found: Sequence[Row], asked: Sequence[Asked]) -> Sequence[Cell]:
    cells = leak_watch.read(asked)
    leak_series.bar("ladder", asked, cells, words_leak_more.ladder)
    parts = [CSS, _heads()]
    for row in found:
        parts.append(f'<p class="ll-row">{html.escape(row.column.title)}</p><div class="ll-rungs">')
        parts += [_figure(one, row.column.title) for one in rungs(row, leak_watch.read(row.asked))]
        parts.append("</div>")
    st.html("".join(parts))
    plain = next((value for cell in cells if (value := cell.trivial(0)) is not None), None)
    if plain is not None:
        told = words_leak_more.GREY.format(value=words_leak.decibel(plain))
        leak_series.why(f"{told} {words_leak.NO_PROOF}")
    leak_series.failures([cell for cell in cells if cell.id])
    return cells


def rungs(row: Row, cells: Sequence[Cell]) -> list[Rung]:
    absent: Mapping[str, str] = row.promise.guarantee.absent if row.promise.guarantee else {}
    answers: dict[str, Answer] = {one.view: one for one in row.promise.answers}
    return [
        Rung(view, cell, absent.get(view, ""), words_leak_more.epsilon(answers.get(view)))
        for view, cell in zip(VIEWS, cells, strict=True)
    ]


def _heads() -> str:
    """Who they are and what they hold: said once, above both rows."""
    heads = [
        f"<div><b>{html.escape(words_leak_more.ADVERSARIES[view])}</b>"
        f'<span class="ll-faint">{html.escape(words_leak_more.HOLDS[view])}</span></div>'
        for view in VIEWS
    ]
    return f'<div class="ll-rungs">{"".join(heads)}</div>'


def _figure(one: Rung, column: str) -> str:
    if one.absent or (one.cell.problem and not one.cell.id):
        why = html.escape(one.absent or one.cell.problem)
        return f'<figure><div class="ll-blank">{words_leak_more.NOT_HERE}</div><figcaption>{why}</figcaption></figure>'
    cell, said = one.cell, words_leak.state(one.cell)
    value, shown = cell.psnr(0), leak_series.last(cell)
    leaking = cell.done and (cell.gain(0) or 0.0) > words_leak.BETTER
    alt = html.escape(words_leak_more.rung(one.view, said, value, column), quote=True)
    blank = f'<div class="ll-blank">{words_leak_more.EMPTY}</div>'
    picture = f'<img alt="{alt}" src="data:image/png;base64,{shown}">' if shown else blank
    number = f'<b class="ll-number{" ll-leaking" if leaking else ""}">{words_leak.decibel(value)}</b>'
    tail = f"{said} · {words_leak.LEAKS}" if leaking else said
    caption = f'{number}<span class="ll-faint">{html.escape(tail)}</span><span>{html.escape(one.promise)}</span>'
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
