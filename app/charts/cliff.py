"""The cliff: how near the best attack came, by how loud the noise was beside the upload, with ε above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go

from app import theme
from app.charts.base import axis, figure
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from engine.results.cliff import Cliff, CliffPoint

SYMBOLS = {"converged": "circle", "not converged": "x-thin-open", "diverged": "triangle-up-open"}
ROOM = 1.6  # beyond the outermost points
HEIGHT = 430
CEILING = 60.0  # dB: a picture that is back to the last shade; what lies above is drawn here


@dataclass(frozen=True)
class TopAxis:
    """The axis on top: at which noise over signal each ε stands, and whose ε it is."""

    title: str
    ticks: tuple[tuple[float, str], ...]
    of: Callable[[float | None], str]  # the ε of one noise in words, for the pointer


def draw(found: Cliff, above: TopAxis, region: tuple[float, float], dark: bool) -> go.Figure:
    drawn = figure(HEIGHT, dark)
    ratios = [ratio for ratio, _ in above.ticks] + [one.ratio for one in found.points]
    left = min([*ratios, region[0]]) / 3  # where the control stands: a log axis has no zero
    span = (left / ROOM, max([*ratios, region[1]]) * ROOM)
    _expected(drawn, span, region, dark)
    _line(drawn, found.trivial, dark)
    shown = ([replace(found.control, ratio=left)] if found.control else []) + list(found.points)
    if len(shown) > 1:
        trail = {"color": theme.FAINT["dark" if dark else "light"], "width": 1.5}
        drawn.add_scatter(
            x=[one.ratio for one in shown], y=[height(one) for one in shown], mode="lines", line=trail,
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    for state in SYMBOLS:
        _marks(drawn, state, [one for one in shown if one.state == state], above, dark)
    if any(one.leaks for one in shown):
        shade = theme.LEAKING["dark" if dark else "light"]
        marker = {"symbol": "square", "size": 11, "color": shade}
        drawn.add_scatter(x=[None], y=[None], mode="markers", name=series_texts.CAME_BACK, marker=marker)
    _axes(drawn, found, above, span, left, dark)
    return drawn


def _expected(drawn: go.Figure, span: tuple[float, float], region: tuple[float, float], dark: bool) -> None:
    """What is expected before anything is measured: words beside the colours."""
    side = "dark" if dark else "light"
    drawn.add_vrect(*region, fillcolor=theme.FAINT[side], opacity=0.16, line_width=0, layer="below")
    places = [
        (span[0], region[0], series_texts.REGION_LEFT, theme.LEAKING[side]),
        (*region, series_texts.REGION, theme.INK[side]),
        (region[1], span[1], series_texts.REGION_RIGHT, theme.PRIVATE[side]),
    ]
    for start, end, text, colour in places:
        middle = math.log10(start * end) / 2
        drawn.add_annotation(
            x=middle, y=0.985, yref="paper", yanchor="top", text=text, showarrow=False, font={"color": colour}
        )


def _line(drawn: go.Figure, trivial: float | None, dark: bool) -> None:
    if trivial is None:
        return
    faint = theme.FAINT["dark" if dark else "light"]
    drawn.add_hline(
        trivial, line={"color": faint, "dash": "dot", "width": 1.5},
        annotation={"text": f"{attack_texts.GREY}, {attack_texts.decibel(trivial)}", "font": {"color": faint}},
        annotation_position="bottom left",
    )  # fmt: skip


def _marks(drawn: go.Figure, state: str, points: Sequence[CliffPoint], above: TopAxis, dark: bool) -> None:
    """One shape for each end of an attack; vermilion where the picture came back. None is teal: failing is no proof."""
    side = "dark" if dark else "light"
    if not points:
        return
    colours = [theme.LEAKING[side] if one.leaks else theme.INK[side] for one in points]
    drawn.add_scatter(
        x=[one.ratio for one in points], y=[height(one) for one in points], mode="markers",
        name=series_texts.SHAPES[state], showlegend=False,
        marker={"symbol": SYMBOLS[state], "size": 11, "color": colours, "line": {"width": 2.5, "color": colours}},
        text=[series_texts.point(one, above.of(one.noise)) for one in points],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    drawn.add_scatter(  # in the legend a shape has no colour: that means something else
        x=[None], y=[None], mode="markers", name=series_texts.SHAPES[state],
        marker={
            "symbol": SYMBOLS[state], "size": 11, "color": theme.FAINT[side],
            "line": {"width": 2, "color": theme.FAINT[side]},
        },
    )  # fmt: skip


def _axes(drawn: go.Figure, found: Cliff, above: TopAxis, span: tuple[float, float], left: float, dark: bool) -> None:
    across = {"type": "log", "range": [math.log10(end) for end in span]}
    whole = range(math.ceil(math.log10(left * 1.5)), math.floor(math.log10(span[1])) + 1)
    ticks = {left: series_texts.NO_NOISE, **{10.0**power: f"{10.0**power:g}" for power in whole}}
    drawn.update_xaxes(
        title={"text": series_texts.RATIO, "font": {"size": 13}},
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        **across,
    )
    drawn.add_scatter(
        x=[None], y=[None], xaxis="x2", showlegend=False, hoverinfo="skip"
    )  # else there is no second axis
    drawn.update_layout(
        hovermode="closest",
        legend={"y": -0.2, "yanchor": "top", "x": 0},
        xaxis2={
            **axis(dark), **across, "overlaying": "x", "side": "top", "showgrid": False, "ticks": "outside",
            "title": {"text": above.title, "font": {"size": 13}}, "tickangle": 0,
            "tickvals": [ratio for ratio, _ in above.ticks], "ticktext": [text for _, text in above.ticks],
        },
    )  # fmt: skip
    heights = [height(one) for one in (found.control, *found.points) if one]
    top, low = max([*heights, 30.0]), min([*heights, 5.0])
    ticks_up = {"tickvals": list(range(0, int(CEILING) + 1, 10))}
    capped = {**ticks_up, "ticktext": [*map(str, range(0, int(CEILING), 10)), series_texts.OR_MORE]}
    drawn.update_yaxes(
        title={"text": series_texts.BEST, "font": {"size": 13}},
        range=[min(0.0, low - 2), top * 1.3],
        **(capped if top == CEILING else {}),
    )


def height(one: CliffPoint) -> float:
    return min(one.psnr, CEILING)
