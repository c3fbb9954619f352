"""The grid of pictures: the data that the browser draws, and the place of the drawing on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from app.texts import attacks as attack_texts
from app.texts import verdicts
from app.widgets import score_bars
from app.widgets.component import component
from engine.events import Pictured
from engine.results.attack_summary import AttackCell, best_cell, guess_of, of_column

HEAD_PX, ROW_PX = 110, 175  # the least height of the head and of a row

_component = component("leaklens_grid", '<div class="grid"></div>\n', "picture_grid.css", "picture_grid.js")


@dataclass(frozen=True)
class ColumnHead:
    """The head of a column."""

    key: str
    title: str
    lines: tuple[tuple[str, str], ...] = ()  # each with its side: private, leaking or neither


@dataclass(frozen=True)
class GridSheet:
    """A grid and how to show it."""

    heads: Sequence[ColumnHead]
    attacks: Mapping[str, str]  # titles, in the order of the rows
    cells: Sequence[AttackCell]
    picture: int = 0  # index of the shown picture in the upload
    frames: bool = False  # whether the grid has a scrubber
    autoplay: str = ""  # name of an animation that plays once
    original: str = ""  # PNG in base64, shown until the first attack reports the original
    each: bool = True  # whether each attack has a row, next to the best of all

    @property
    def rows(self) -> Mapping[str, str]:
        """The attacks with a row of their own. A single attack needs no row of the best."""
        return self.attacks if self.each or len(self.attacks) == 1 else {}

    def cell(self, attack: str, column: str) -> AttackCell | None:
        return next((cell for cell in self.cells if (cell.attack, cell.column) == (attack, column)), None)


def draw(sheet: GridSheet) -> None:
    """Draw the grid in a frame of its final height, so that the page below does not move when it appears."""
    rows = len(sheet.rows) + (len(sheet.attacks) > 1)
    st.html(f"<style>.st-key-leak-sheet {{ min-height: {HEAD_PX + rows * ROW_PX}px; }}</style>")
    with st.container(key="leak-sheet"):
        _component(key="leak-grid", data=grid_json(sheet))


def grid_json(sheet: GridSheet) -> dict[str, Any]:
    """Return everything that the browser draws, as JSON."""
    rows = [_row(sheet, attack, title) for attack, title in sheet.rows.items()]
    if len(sheet.attacks) > 1:
        rows.append(_best(sheet))
    moments = max((len(cell["frames"]) for row in rows for cell in row["cells"]), default=0)
    return {
        "columns": [_head(head) for head in sheet.heads],
        "rows": rows,
        "original": _original(sheet),
        "moments": moments,
        "labels": _labels(sheet, moments),
        "autoplay": sheet.autoplay,
        "words": {**attack_texts.KEYS, "caption": attack_texts.GRID},
    }


def _head(head: ColumnHead) -> dict[str, Any]:
    return {"title": head.title, "lines": [{"text": text, "side": side} for text, side in head.lines]}


def _original(sheet: GridSheet) -> dict[str, str]:
    """Return the original picture."""
    source = sheet.original
    for cell in sheet.cells:
        if cell.seen and sheet.picture < len(cell.seen.originals):
            source = cell.seen.originals[sheet.picture]
            break
    return {"title": attack_texts.ORIGINAL, "src": source, "alt": attack_texts.ORIGINAL_ALT}


def mean_colour_psnr(cells: Sequence[AttackCell], picture: int) -> float | None:
    """Return the PSNR of the mean colour of a picture, the bar that a leak must beat; None before any attack."""
    values = (cell.trivial(picture) for cell in cells)
    return next((value for value in values if value is not None), None)


def _row(sheet: GridSheet, attack: str, title: str) -> dict[str, Any]:
    cells = [_cell(sheet, sheet.cell(attack, head.key), title, head.title) for head in sheet.heads]
    return {"title": title, "note": "", "kind": "attack", "cells": cells}


def _best(sheet: GridSheet) -> dict[str, Any]:
    """Return the row of the best attack in each column. An attacker cannot see which one it is."""
    title = attack_texts.BEST.format(count=len(sheet.attacks))
    cells = []
    for head in sheet.heads:
        column = of_column(sheet.cells, head.key)
        best = best_cell(column, sheet.picture)
        attack = sheet.attacks.get(best.attack, "") if best else ""
        moving = next((cell for cell in column if cell.moving), None)  # before the first guess of any
        drawn = _cell(sheet, best or moving, attack or title, head.title)
        if best:
            possible = [cell for cell in column if cell.id or cell.status]
            done = sum(cell.done for cell in possible)
            drawn["by"] = attack_texts.so_far(attack, done, len(possible))
        cells.append(drawn)
    return {"title": title, "note": attack_texts.BEST_NOTE, "kind": "best", "cells": cells}


def _cell(sheet: GridSheet, cell: AttackCell | None, attack: str, column: str) -> dict[str, Any]:
    """Return one picture with its verdict. `by` is the attack, `remark` whether it converged."""
    if cell is None:
        alt = attack_texts.alt(attack, column, attack_texts.NOT_REQUESTED)
        word = attack_texts.NOT_REQUESTED
        texts = {"word": word, "by": "", "tone": "", "alt": alt, "name": alt, "remark": ""}
        return {"src": "", "frames": [], **texts, "scores": []}
    guesses = _guesses(cell, sheet.picture)
    word = verdicts.caption(cell, sheet.picture)
    return {
        "src": guesses[-1] if guesses else "",
        "frames": guesses if sheet.frames else [],
        "word": word,
        "by": "",
        "tone": _tone(cell, cell.leaks(sheet.picture)),
        "alt": attack_texts.alt(attack, column, word),
        "name": attack_texts.alt(attack, column, ""),
        "remark": verdicts.remark(cell.judged) if cell.judged else cell.problem,
        "scores": [asdict(bar) for bar in score_bars.bars(cell, sheet.picture)],
    }


def _guesses(cell: AttackCell, picture: int) -> list[str]:
    """Return the PNG of each guess of one picture."""
    guesses = [guess_of(event, picture) for event in cell.path]
    return [guess[0] for guess in guesses if guess is not None]


def _tone(cell: AttackCell, leaks: bool) -> str:
    if leaks:
        return "leaking"
    return "wrong" if cell.status == "failed" else ""


def _labels(sheet: GridSheet, moments: int) -> list[str]:
    """Return the label of each place on the scrubber: iterations if all attacks take the same number, or percent."""
    if moments < 2:
        return []
    longest: Sequence[Pictured] = max((cell.path for cell in sheet.cells), key=len, default=())
    lengths = {cell.path[-1].of for cell in sheet.cells if len(cell.path) > 1}
    if len(lengths) == 1 and len(longest) == moments:
        return [attack_texts.ITERATION.format(now=event.iteration, of=event.of) for event in longest]
    return [attack_texts.SHARE.format(share=round(100 * place / (moments - 1))) for place in range(moments)]
