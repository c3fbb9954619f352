"""How near the guesses of each attack came while they formed: PSNR by iteration, with what a grey square reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.charts.base import DASHES, figure
from app.texts import attacks as attack_texts

TOP = 60.0  # dB: beyond it two pictures cannot be told apart, and the rest of the chart would lie flat


@dataclass(frozen=True)
class PsnrCurve:
    """One attack against one protection."""

    attack: str
    column: str
    row: int  # of the attack in the grid: the kind of its line
    place: int  # of the protection: its colour; 0 is the control
    iterations: tuple[int, ...]
    psnr: tuple[float, ...]


def colour(place: int, dark: bool) -> str:
    """The control is vermilion; protections follow in the fixed order of all charts, which never shows it again."""
    if place == 0:
        return theme.LEAKING["dark" if dark else "light"]
    others = [one for one in theme.OKABE_ITO if one != "#D55E00"]
    found = others[(place - 1) % len(others)]
    return theme.ON_DARK.get(found, found) if dark else found


def draw(curves: Sequence[PsnrCurve], trivial: float | None, dark: bool) -> go.Figure:
    drawn = figure(340, dark)
    drawn.update_layout(hovermode="closest", legend={"y": 1.04})
    for one in curves:
        drawn.add_scatter(
            x=one.iterations,
            y=[min(TOP, value) for value in one.psnr],
            customdata=[attack_texts.decibel(value) for value in one.psnr],
            name=f"{one.column}, {one.attack}",
            mode="markers" if len(one.iterations) < 2 else "lines",
            line={"color": colour(one.place, dark), "width": 2.5, "dash": DASHES[one.row % len(DASHES)]},
            marker={"color": colour(one.place, dark), "size": 9},
            hovertemplate="%{customdata} at iteration %{x:,}",
            showlegend=False,
        )
    _legend(drawn, curves, dark)
    if trivial is not None:
        side = "dark" if dark else "light"
        drawn.add_hline(
            trivial, line={"color": theme.FAINT[side], "dash": "dot", "width": 1.5},
            annotation={"text": attack_texts.GREY, "font": {"color": theme.FAINT[side]}},
            annotation_position="top right",
        )  # fmt: skip
    drawn.update_xaxes(title="iteration")
    high = any(value > TOP for one in curves for value in one.psnr)
    drawn.update_yaxes(title="PSNR, dB: lower is more private")
    if high:
        drawn.update_yaxes(range=[0, TOP + 2], tickvals=[0, 20, 40, TOP], ticktext=["0", "20", "40", f"{TOP:.0f}+"])
    return drawn


def _legend(drawn: go.Figure, curves: Sequence[PsnrCurve], dark: bool) -> None:
    """Colours are protections, kinds of line are attacks: each is said once."""
    plain = theme.FAINT["dark" if dark else "light"]
    entries = {one.column: (colour(one.place, dark), "solid") for one in curves}
    if len({one.attack for one in curves}) > 1:
        entries |= {one.attack: (plain, DASHES[one.row % len(DASHES)]) for one in curves}
    for name, (shade, dash) in entries.items():
        drawn.add_scatter(
            x=[None], y=[None], name=name, mode="lines", line={"color": shade, "dash": dash, "width": 2.5}
        )


def describe(curves: Sequence[PsnrCurve], trivial: float | None) -> str:
    said = [f"{one.attack} against {one.column} ends at {attack_texts.decibel(one.psnr[-1])}" for one in curves]
    plain = "" if trivial is None else f". {attack_texts.GREY.capitalize()} reaches {attack_texts.decibel(trivial)}"
    return f"PSNR by iteration. {'; '.join(said)}{plain}."
