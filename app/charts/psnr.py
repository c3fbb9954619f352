"""The PSNR chart: how close the guesses of each attack come to the original, by iteration.

A dotted line marks the PSNR of a grey square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.charts.base import DASHES, figure
from app.texts import attacks as attack_texts

# dB. Above it two pictures look the same. A higher axis would flatten the rest of the chart.
FEW = 10  # points of a curve that are marked: stored examples keep a few guesses
TOP = 60.0


@dataclass(frozen=True)
class PsnrCurve:
    """The PSNR of one attack against one protection."""

    attack: str
    column: str
    row: int  # index of the attack in the grid; it sets the dash of the line
    place: int  # index of the protection; it sets the colour; 0 is the baseline
    iterations: tuple[int, ...]
    psnr: tuple[float, ...]


def colour(place: int, dark: bool) -> str:
    """Grey for the baseline. Protections take the other colours in the order that all charts share."""
    if place == 0:
        return theme.baseline(dark)
    return theme.series(place - 1, dark)


def draw(curves: Sequence[PsnrCurve], trivial: float | None, dark: bool) -> go.Figure:
    """One line for each attack and protection. `trivial` is the PSNR of a grey square."""
    chart = figure(340, dark)
    chart.update_layout(hovermode="closest", legend={"y": 1.04})
    for curve in curves:
        shade = colour(curve.place, dark)
        chart.add_scatter(
            x=curve.iterations,
            y=[min(TOP, value) for value in curve.psnr],
            customdata=[attack_texts.decibel(value) for value in curve.psnr],
            name=f"{curve.column}, {curve.attack}",
            mode="lines+markers" if len(curve.iterations) <= FEW else "lines",
            line={"color": shade, "width": 2.5, "dash": DASHES[curve.row % len(DASHES)]},
            marker={"color": shade, "size": 9, "symbol": _symbol(curve)},
            hovertemplate="%{customdata} at iteration %{x:,}",
            showlegend=False,
        )
    _legend(chart, curves, dark)
    if trivial is not None:
        faint = theme.FAINT["dark" if dark else "light"]
        chart.add_hline(
            trivial, line={"color": faint, "dash": "dot", "width": 1.5},
            annotation={"text": attack_texts.GREY, "font": {"color": faint}},
            annotation_position="top right",
        )  # fmt: skip
    chart.update_xaxes(title="iteration")
    chart.update_yaxes(title="PSNR, dB: lower is more private")
    if any(value > TOP for curve in curves for value in curve.psnr):
        chart.update_yaxes(range=[0, TOP + 2], tickvals=[0, 20, 40, TOP], ticktext=["0", "20", "40", f"{TOP:.0f}+"])
    return chart


def _legend(chart: go.Figure, curves: Sequence[PsnrCurve], dark: bool) -> None:
    """One entry for each protection (colour) and, if there are several attacks, one for each attack (dash, symbol)."""
    ink = theme.INK["dark" if dark else "light"]
    entries = {curve.column: (colour(curve.place, dark), "solid", "") for curve in curves}
    if len({curve.attack for curve in curves}) > 1:
        entries |= {curve.attack: (ink, DASHES[curve.row % len(DASHES)], _symbol(curve)) for curve in curves}
    for name, (shade, dash, symbol) in entries.items():
        chart.add_scatter(
            x=[None], y=[None], name=name, mode="lines+markers" if symbol else "lines",
            line={"color": shade, "dash": dash, "width": 2.5}, marker={"color": shade, "symbol": symbol or "circle"},
        )  # fmt: skip


def _symbol(curve: PsnrCurve) -> str:
    """The symbol of an attack, which a curve of a single point needs."""
    return theme.SYMBOLS[curve.row % len(theme.SYMBOLS)]


def describe(curves: Sequence[PsnrCurve], trivial: float | None) -> str:
    """The last PSNR of each curve, and the PSNR of a grey square."""
    ends = []
    for curve in curves:
        ends.append(f"{curve.attack} against {curve.column} ends at {attack_texts.decibel(curve.psnr[-1])}")
    grey = "" if trivial is None else f". {attack_texts.GREY.capitalize()} reaches {attack_texts.decibel(trivial)}"
    return f"PSNR by iteration. {'; '.join(ends)}{grey}."
