"""The grid of pictures: what its drawing in the browser is told, and where that drawing is put on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

from app.texts import attacks as attack_texts
from engine.events import Pictured
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, best, moment, of_column

HEAD_PX, ROW_PX = 110, 155  # of the grid, at least
HERE = Path(__file__).parent


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


_drawn = st.components.v2.component(
    "leaklens_grid", html='<div class="grid"></div>\n', css=_text("grid.css"), js=_text("grid.js")
)


@dataclass(frozen=True)
class ColumnHead:
    """What stands above a column."""

    key: str
    title: str
    lines: tuple[tuple[str, str], ...] = ()  # each with its side: private, leaking or neither


@dataclass(frozen=True)
class GridSheet:
    """A grid as it is to be shown."""

    heads: Sequence[ColumnHead]
    attacks: Mapping[str, str]  # titles, in the order of the rows
    cells: Sequence[AttackCell]
    picture: int = 0  # which of the upload
    frames: bool = False  # whether the scrubber is there
    autoplay: str = ""  # a name: played once
    original: str = ""  # PNG in base64, where no attack has told it yet
    titles: Mapping[str, str] = field(default_factory=dict)

    def cell(self, attack: str, column: str) -> AttackCell | None:
        return next((one for one in self.cells if (one.attack, one.column) == (attack, column)), None)


def draw(sheet: GridSheet) -> None:
    """In a frame as high as the grid will be: what stands below it does not jump when the browser has drawn it."""
    rows = len(sheet.attacks) + (len(sheet.attacks) > 1)
    st.html(f"<style>.st-key-leak-sheet {{ min-height: {HEAD_PX + rows * ROW_PX}px; }}</style>")
    with st.container(key="leak-sheet"):
        _drawn(key="leak-grid", data=told(sheet))


def told(sheet: GridSheet) -> dict[str, Any]:
    """Everything that the browser draws, as JSON."""
    rows = [_row(sheet, attack, title) for attack, title in sheet.attacks.items()]
    if len(sheet.attacks) > 1:
        rows.append(_best(sheet))
    most = max((len(cell["frames"]) for row in rows for cell in row["cells"]), default=0)
    return {
        "columns": [_head(head) for head in sheet.heads],
        "rows": rows,
        "original": _original(sheet),
        "moments": most,
        "labels": _labels(sheet, most),
        "autoplay": sheet.autoplay,
        "words": {**attack_texts.KEYS, "caption": attack_texts.GRID},
    }


def _head(head: ColumnHead) -> dict[str, Any]:
    return {"title": head.title, "lines": [{"text": text, "side": side} for text, side in head.lines]}


def _original(sheet: GridSheet) -> dict[str, str]:
    seen = next((cell.seen for cell in sheet.cells if cell.seen and sheet.picture < len(cell.seen.originals)), None)
    plain = next((value for cell in sheet.cells if (value := cell.trivial(sheet.picture)) is not None), None)
    caption = "" if plain is None else attack_texts.TRIVIAL.format(value=attack_texts.decibel(plain))
    source = seen.originals[sheet.picture] if seen else sheet.original
    return {"title": attack_texts.ORIGINAL, "src": source, "alt": attack_texts.ORIGINAL_ALT, "caption": caption}


def _row(sheet: GridSheet, attack: str, title: str) -> dict[str, Any]:
    cells = [_cell(sheet, sheet.cell(attack, head.key), title, head.title) for head in sheet.heads]
    return {"title": title, "note": "", "kind": "attack", "cells": cells}


def _best(sheet: GridSheet) -> dict[str, Any]:
    """The adversary envelope."""
    cells = []
    for head in sheet.heads:
        found = best(of_column(sheet.cells, head.key), sheet.picture)
        by = sheet.attacks.get(found.attack, "") if found else ""
        body = _cell(sheet, found, by or attack_texts.BEST, head.title)
        cells.append({**body, "state": attack_texts.BY.format(attack=by)} if found else body)
    return {"title": attack_texts.BEST, "note": attack_texts.BEST_NOTE, "kind": "best", "cells": cells}


def _cell(sheet: GridSheet, cell: AttackCell | None, attack: str, column: str) -> dict[str, Any]:
    if cell is None:
        alt = attack_texts.alt(attack, column, None, attack_texts.UNASKED)
        return {"src": "", "frames": [], "psnr": [], "value": "", "state": "", "tone": "", "alt": alt, "hover": ""}
    at = sheet.picture
    path = [found for one in cell.path if (found := moment(one, at)) is not None]
    shown = path if sheet.frames else []
    value, state = cell.psnr(at), attack_texts.state(cell)
    numbers = {metric: number for metric in ("ssim", "lpips") if (number := cell.number(metric, at)) is not None}
    leaks = (cell.gain(at) or 0.0) > attack_summary.BETTER and not cell.moving
    return {
        "src": path[-1][0] if path else "",
        "frames": [png for png, _ in shown],
        "psnr": [psnr for _, psnr in shown],
        "value": "" if value is None else attack_texts.decibel(value),
        "state": f"{state} · {attack_texts.LEAKS}" if leaks else state,
        "tone": "leaking" if leaks else "wrong" if cell.status == "failed" else "",
        "alt": attack_texts.alt(attack, column, value, state),
        "hover": attack_texts.hover(numbers, cell.judged.reason if cell.judged else cell.problem),
    }


def _labels(sheet: GridSheet, moments: int) -> list[str]:
    """What each place of the scrubber stands for: iterations where all attacks take as many, else shares."""
    longest: Sequence[Pictured] = max((cell.path for cell in sheet.cells), key=len, default=())
    ends = {cell.path[-1].of for cell in sheet.cells if len(cell.path) > 1}
    if moments < 2:
        return []
    if len(ends) == 1 and len(longest) == moments:
        return [attack_texts.ITERATION.format(now=one.iteration, of=one.of) for one in longest]
    return [attack_texts.SHARE.format(share=round(100 * place / (moments - 1))) for place in range(moments)]
