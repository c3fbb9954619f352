"""The scores of a guess as bars, each with the mark of a grey square."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.texts import attacks as attack_texts
from engine.results.attack_summary import AttackCell

CLOSE_DB = 40.0  # a PSNR that fills its bar
METRICS = {"psnr": "PSNR", "ssim": "SSIM", "lpips": "LPIPS"}
CSS = """
<style>
.ll-scores { display: grid; grid-template-columns: 3.4rem 1.2rem 1fr 4rem; gap: .3rem .5rem; align-items: center;
  margin: .2rem 0 .5rem; padding: 0; font-variant-numeric: tabular-nums; font-size: .92rem; }
.ll-scores h3 { font-size: .92rem; font-weight: 600; margin: 0; padding: 0; }
.ll-scores > span { position: relative; height: .7rem; background: var(--hair); }
.ll-scores i { position: absolute; inset: 0 auto 0 0; background: var(--control); }
.ll-scores .ll-second i { background: repeating-linear-gradient(115deg, var(--control) 0 5px, transparent 5px 8px); }
.ll-scores u { position: absolute; top: -.2rem; bottom: -.2rem; width: 2px; margin-left: -1px; background: var(--ink); }
</style>
"""


@dataclass(frozen=True)
class ScoreBar:
    """One score of a finished guess."""

    name: str
    text: str  # the value with its unit
    share: float  # the length of the bar, from 0 to 1
    grey: float | None  # the mark of a grey square


def bars(cell: AttackCell, picture: int) -> list[ScoreBar]:
    """The scores of a finished guess; none before its attack has ended."""
    scores = []
    for metric, name in METRICS.items():
        value = cell.number(metric, picture)
        if value is not None:
            grey = cell.trivial(picture, metric)
            mark = None if grey is None else _length(metric, grey)
            scores.append(ScoreBar(name, attack_texts.metric(metric, value), _length(metric, value), mark))
    return scores


def _length(metric: str, value: float) -> float:
    """The length of a bar between 0 and 1."""
    length = value / CLOSE_DB if metric == "psnr" else value
    return round(min(1.0, max(0.0, length)), 3)


def show(sides: Mapping[str, Sequence[ScoreBar]]) -> None:
    """Draw the scores of each side, metric by metric. The bars of the second side are hatched."""
    rows = []
    for name in METRICS.values():
        for place, (side, scores) in enumerate(sides.items()):
            for bar in scores:
                if bar.name == name:
                    rows.append(_row(name if place == 0 else "", side if len(sides) > 1 else "", bar, place))
    st.html(f'{CSS}<div class="ll-scores">{"".join(rows)}</div>')


def _row(name: str, side: str, bar: ScoreBar, place: int) -> str:
    mark = "" if bar.grey is None else f'<u style="left:{100 * bar.grey:.1f}%"></u>'
    second = ' class="ll-second"' if place else ""
    track = f'<span{second} aria-hidden="true"><i style="width:{100 * bar.share:.1f}%"></i>{mark}</span>'
    return f"<h3>{name}</h3><b>{html.escape(side)}</b>{track}<div>{html.escape(bar.text)}</div>"
