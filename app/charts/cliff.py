"""The cliff chart: the PSNR of the best attack by noise over signal, with ε on the top axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.charts.base import axis, figure
from app.texts import attack_series as series_texts
from app.texts import attacks as attack_texts
from engine.results.cliff import Cliff, CliffPoint
from engine.results.verdict import COMES_BACK, KIND, LEAKS, NOT_RECOGNISED, OUTLINES, Verdict

SYMBOLS: dict[Verdict, str] = {
    COMES_BACK: "circle", OUTLINES: "circle-open", KIND: "triangle-up-open", NOT_RECOGNISED: "x-thin-open"
}  # fmt: skip
ROOM = 1.6  # factor beyond the outermost points
HEIGHT = 430
SMALL = 12  # px, of labels in and on the chart
BASELINE_ROOM = 0.17  # of the axis: the label of the baseline, and half of the next one on a phone
TOP_TICKS = 5  # at most, so that the labels of ε do not overlap on a phone
CEILING = 60.0  # dB; from here on the picture is exact to the last shade, so higher points are drawn here


@dataclass(frozen=True)
class TopAxis:
    """The top axis: the ε at each noise over signal, and the terms of these ε."""

    title: str
    ticks: tuple[tuple[float, str], ...]
    of: Callable[[float | None], str]  # the ε of one noise in words, for the label at the pointer


def draw(cliff: Cliff, above: TopAxis, region: tuple[float, float], dark: bool) -> go.Figure:
    """One point for each measured noise. `region` is where the picture is expected to be hidden."""
    chart = figure(HEIGHT, dark)
    ratios = [ratio for ratio, _ in above.ticks]
    ratios += [point.ratio for point in cliff.points]
    left = min([*ratios, region[0]]) / 3  # the place of the baseline: a log axis has no zero
    span = (left / ROOM, max([*ratios, region[1]]) * ROOM)
    _add_expectation(chart, span, region, dark)
    _add_grey_square(chart, cliff.trivial, dark)
    points = list(cliff.points)
    if cliff.baseline:
        points.insert(0, replace(cliff.baseline, ratio=left))
    if len(points) > 1:
        stroke = {"color": theme.FAINT["dark" if dark else "light"], "width": 1.5}
        chart.add_scatter(
            x=[point.ratio for point in points], y=[height(point) for point in points], mode="lines", line=stroke,
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    for word in SYMBOLS:
        _add_marks(chart, word, [point for point in points if point.verdict == word], above, dark)
    _set_axes(chart, cliff, above, span, left, dark)
    return chart


def _add_expectation(chart: go.Figure, span: tuple[float, float], region: tuple[float, float], dark: bool) -> None:
    """The forecast: a shaded region with a label in it and one on each side."""
    side = "dark" if dark else "light"
    chart.add_vrect(*region, fillcolor=theme.FAINT[side], opacity=0.16, line_width=0, layer="below")
    labels = [
        (span[0], region[0], series_texts.REGION_LEFT),
        (*region, series_texts.REGION),
        (region[1], span[1], series_texts.REGION_RIGHT),
    ]
    for start, end, text in labels:
        # No label has a colour: teal means a proven promise, and vermilion what came back.
        chart.add_annotation(
            x=math.log10(start * end) / 2, y=0.985, yref="paper", yanchor="top", text=text, showarrow=False,
            font={"color": theme.FAINT[side], "size": SMALL},
        )  # fmt: skip


def _add_grey_square(chart: go.Figure, trivial: float | None, dark: bool) -> None:
    """A dotted line at the PSNR of a grey square."""
    if trivial is None:
        return
    faint = theme.FAINT["dark" if dark else "light"]
    chart.add_hline(
        trivial, line={"color": faint, "dash": "dot", "width": 1.5},
        annotation={"text": attack_texts.GREY, "font": {"color": faint, "size": SMALL}},
        annotation_position="bottom left",
    )  # fmt: skip


def _add_marks(chart: go.Figure, word: Verdict, points: Sequence[CliffPoint], above: TopAxis, dark: bool) -> None:
    """One symbol for each verdict. A mark is vermilion if something of the picture comes back.

    No mark is teal, the colour of protection: a failed attack proves nothing.
    """
    if not points:
        return
    side = "dark" if dark else "light"
    symbol = SYMBOLS[word]
    shade = theme.LEAKING[side] if word in LEAKS else theme.INK[side]
    chart.add_scatter(
        x=[point.ratio for point in points], y=[height(point) for point in points], mode="markers",
        name=word, showlegend=False,
        marker={"symbol": symbol, "size": 11, "color": shade, "line": {"width": 2.5, "color": shade}},
        text=[series_texts.point(point, above.of(point.noise)) for point in points],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    chart.add_scatter(
        x=[None], y=[None], mode="markers", name=word,
        marker={"symbol": symbol, "size": 11, "color": shade, "line": {"width": 2, "color": shade}},
    )  # fmt: skip


def _set_axes(
    chart: go.Figure, cliff: Cliff, above: TopAxis, span: tuple[float, float], left: float, dark: bool
) -> None:
    across = {"type": "log", "range": [math.log10(end) for end in span]}
    room = (span[1] / span[0]) ** BASELINE_ROOM
    powers = range(math.ceil(math.log10(left * room)), math.floor(math.log10(span[1])) + 1)
    ticks = {left: series_texts.NO_NOISE, **{10.0**power: f"{10.0**power:g}" for power in powers}}
    chart.update_xaxes(
        title={"text": series_texts.RATIO, "font": {"size": SMALL}},
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        tickangle=0,
        **across,
    )
    # Plotly draws the second axis only if a trace uses it.
    chart.add_scatter(x=[None], y=[None], xaxis="x2", showlegend=False, hoverinfo="skip")
    ticks_above = spaced(above.ticks, span)
    chart.update_layout(
        hovermode="closest",
        legend={"y": -0.2, "yanchor": "top", "x": 0},
        xaxis2={
            **axis(dark), **across, "overlaying": "x", "side": "top", "showgrid": False, "ticks": "outside",
            "title": {"text": above.title, "font": {"size": SMALL}}, "tickangle": 0,
            "tickvals": [ratio for ratio, _ in ticks_above], "ticktext": [text for _, text in ticks_above],
        },
    )  # fmt: skip
    heights = [height(point) for point in (cliff.baseline, *cliff.points) if point]
    top = max([*heights, 30.0])
    low = min([*heights, 5.0])
    title = {"text": series_texts.BEST, "font": {"size": SMALL}}
    chart.update_yaxes(title=title, range=[min(0.0, low - 2), top * 1.3], **_up_ticks(top))


def spaced(ticks: Sequence[tuple[float, str]], span: tuple[float, float]) -> list[tuple[float, str]]:
    """The ticks that have room for their labels. The one with the most noise is always among them."""
    room = (span[1] / span[0]) ** (1 / (TOP_TICKS + 1))
    kept: list[tuple[float, str]] = []
    for ratio, text in sorted(ticks, reverse=True):
        if not kept or kept[-1][0] / ratio >= room:
            kept.append((ratio, text))
    return kept[::-1]


def _up_ticks(top: float) -> dict[str, Any]:
    """Ticks whose last label is "60+", if a point is drawn at the ceiling."""
    if top != CEILING:
        return {}
    labels = [str(tick) for tick in range(0, int(CEILING), 10)]
    return {"tickvals": list(range(0, int(CEILING) + 1, 10)), "ticktext": [*labels, series_texts.OR_MORE]}


def height(point: CliffPoint) -> float:
    """The PSNR at which a point is drawn."""
    return min(point.psnr, CEILING)
