"""The trade-off charts: accuracy by noise, and accuracy by ε in one view.

Each method has a line, and its seeds have a band.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.charts.base import DASHES, axis, paper
from app.texts import numbers, privacy, product
from app.texts import sweep as sweep_texts
from engine.results.summary import PointSummary

HEIGHT = 400
ROOM = 1.25  # factor beyond the outermost points, on a log axis
WIDE = 6.0  # above this ratio of the largest to the smallest noise, the axis is logarithmic
FAINTEST, FAINT = 0.07, 0.13  # opacity where a guarantee means little, and where it means nothing


@dataclass(frozen=True)
class TradeoffLine:
    """One method, with a point at each noise."""

    title: str
    method: str
    points: tuple[PointSummary, ...]
    version: int = 0  # index among the lines of the same method, which share a colour

    def look(self, dark: bool) -> dict[str, Any]:
        """The method's colour and symbol. Further versions of a method are dashed, and every second one is hollow."""
        colour = theme.colour(self.method, dark)
        symbol = theme.symbol(self.method) + ("-open" if self.version % 2 else "")
        line = {"color": colour, "width": 2.5, "dash": DASHES[self.version % len(DASHES)]}
        marker = {"symbol": symbol, "size": 10, "color": colour, "line": {"width": 2, "color": colour}}
        return {"line": line, "marker": marker}


@dataclass(frozen=True)
class Frontier:
    """The finished points of all methods that protect the same unit."""

    unit: str
    lines: tuple[TradeoffLine, ...]
    baselines: tuple[TradeoffLine, ...]  # baselines; each has one point, because it has no noise
    view: str
    own: bool = False  # whether the clients' own models count, for the methods that have them

    @property
    def points(self) -> tuple[PointSummary, ...]:
        """The points of all methods, without the baselines."""
        return tuple(summary for line in self.lines for summary in line.points)

    @property
    def finite(self) -> bool:
        """Whether any point has an ε that the chart can show."""
        return any(shown_epsilon(summary, self.view) for summary in self.points)

    def values(self) -> list[float]:
        """Every accuracy, in %."""
        values = []
        for line in (*self.lines, *self.baselines):
            for summary in line.points:
                values += [100 * value for value in summary.scores(self.own)]
        return values


def shown_epsilon(summary: PointSummary, view: str) -> float | None:
    """The ε of a point, if a log axis can show it: finite and not 0."""
    epsilon = summary.finite_epsilon(view)
    return epsilon.value or None if epsilon else None


def accuracy_range(frontiers: Sequence[Frontier]) -> tuple[float, float]:
    """One range of accuracy for every chart on the page, so that the charts can be compared."""
    values = [value for frontier in frontiers for value in frontier.values()]
    if not values:
        return 0.0, 100.0
    return max(0.0, 10 * math.floor((min(values) - 5) / 10)), min(100.0, 10 * math.ceil((max(values) + 2) / 10))


# --- the two charts ----------------------------------------------------------------------------------------


def by_noise(frontier: Frontier, up: tuple[float, float], dark: bool) -> go.Figure:
    """Accuracy by noise. Protection grows to the right."""
    levels = sorted({summary.noise for summary in frontier.points if summary.noise is not None})
    log = bool(levels) and levels[0] > 0 and levels[-1] > WIDE * levels[0]
    chart = go.Figure(_traces(frontier, lambda summary: summary.noise, dark), _layout(up, dark))
    if levels:
        ends = (levels[0] / ROOM, levels[-1] * ROOM) if log else _padded(levels)
        chart.update_xaxes(
            type="log" if log else "linear", range=[math.log10(end) for end in ends] if log else ends,
            tickvals=levels, ticktext=[f"{level:g}" for level in levels],
        )  # fmt: skip
    chart.update_xaxes(title={"text": sweep_texts.NOISE_AXIS})
    _add_baseline(chart, frontier, dark)
    return chart


def by_epsilon(frontier: Frontier, up: tuple[float, float], dark: bool) -> go.Figure:
    """Accuracy by ε in the view of the frontier: protection grows to the right, so ε falls.

    Points without a finite ε are left out.
    """
    chart = go.Figure(_traces(frontier, lambda summary: shown_epsilon(summary, frontier.view), dark), _layout(up, dark))
    prices = [shown_epsilon(summary, frontier.view) for summary in frontier.points]
    shown = sorted(value for value in prices if value)
    if shown:
        span = shown[0] / ROOM**2, shown[-1] * ROOM**2
        ticks = decades(*span)
        labels = [f"{tick:g}" for tick in ticks]
        ends = [math.log10(end) for end in reversed(span)]
        chart.update_xaxes(type="log", range=ends, tickvals=ticks, ticktext=labels)
        _add_zones(chart, span, dark)
    chart.update_xaxes(title={"text": f"ε {privacy.PER[frontier.unit]}, {privacy.SEEN_BY[frontier.view]}"})
    _add_baseline(chart, frontier, dark)
    return chart


PlacedPoint = tuple[float, PointSummary]  # the point at its place on the horizontal axis


def _traces(frontier: Frontier, across: Callable[[PointSummary], float | None], dark: bool) -> list[dict[str, Any]]:
    """All bands first, so that no band covers a line."""
    bands = []
    lines = []
    for line in frontier.lines:
        placed = _placed(line, across)
        if placed:
            bands += _band(line, placed, frontier.own, dark)
            lines.append(_line(line, placed, frontier, dark))
    return [*bands, *lines]


def _placed(line: TradeoffLine, across: Callable[[PointSummary], float | None]) -> list[PlacedPoint]:
    """The points of a line that have a place on the horizontal axis, from left to right."""
    placed = []
    for summary in line.points:
        x = across(summary)
        if x is not None:
            placed.append((x, summary))
    return sorted(placed, key=_first)


def _line(line: TradeoffLine, placed: Sequence[PlacedPoint], frontier: Frontier, dark: bool) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": line.title,
        "x": [x for x, _ in placed], "y": [100 * summary.score(frontier.own) for _, summary in placed],
        **line.look(dark),
        "text": [hover(line, summary, frontier) for _, summary in placed],
        "hovertemplate": "%{text}<extra></extra>",
        "customdata": [[summary.method, summary.noise] for _, summary in placed],
    }  # fmt: skip


def hover(line: TradeoffLine, summary: PointSummary, frontier: Frontier) -> str:
    """The label of a point: its accuracy and its ε with all terms, in lines that fit on the chart."""
    epsilon = sweep_texts.largest_epsilon(summary, frontier.view).replace(" (", "<br>", 1).removesuffix(")")
    parts = epsilon.split(", ")
    rows = [", ".join(parts[start : start + 3]) for start in range(0, len(parts), 3)]
    head = sweep_texts.point(line.title, summary, frontier.own).replace(": ", "<br>", 1)
    bold = head.replace("<br>", "</b><br>", 1)
    return f"<b>{bold}<br>" + ",<br>".join(rows)


def _band(line: TradeoffLine, placed: Sequence[PlacedPoint], own: bool, dark: bool) -> list[dict[str, Any]]:
    """The area from the worst to the best seed. A single point gets a bar."""
    several = [(x, summary) for x, summary in placed if summary.seeds > 1]
    if not several:
        return []
    low = [100 * min(summary.scores(own)) for _, summary in several]
    high = [100 * max(summary.scores(own)) for _, summary in several]
    across = [x for x, _ in several]
    colour = theme.colour(line.method, dark)
    common = {"hoverinfo": "skip", "showlegend": False, "type": "scatter", "mode": "lines"}
    if len(several) == 1:
        return [{**common, "x": across * 2, "y": [*low, *high], "line": {"color": colour, "width": 6}, "opacity": 0.3}]
    outline = {"x": [*across, *reversed(across)], "y": [*high, *reversed(low)], "line": {"width": 0}}
    return [{**common, **outline, "fill": "toself", "fillcolor": _transparent(colour, 0.18)}]


def _add_baseline(chart: go.Figure, frontier: Frontier, dark: bool) -> None:
    """A horizontal line at the accuracy of each baseline, which has neither noise nor ε."""
    shade = theme.baseline(dark)
    for line in frontier.baselines:
        for summary in line.points:
            values = [100 * value for value in summary.scores(frontier.own)]
            mean = 100 * summary.score(frontier.own)
            if len(values) > 1:
                chart.add_hrect(min(values), max(values), fillcolor=shade, opacity=0.14, line_width=0)
            chart.add_hline(
                mean, line={"color": shade, "dash": "dash", "width": 2},
                annotation={
                    "text": f"{sweep_texts.NO_PROTECTION}, {mean:.1f} %", "font": {"color": shade},
                    "x": 0.01, "xanchor": "left", "yanchor": "bottom",
                },
            )  # fmt: skip


def _add_zones(chart: go.Figure, span: tuple[float, float], dark: bool) -> None:
    """Shades the ε where a promise rules out almost nothing, and where it is no meaningful promise."""
    side = "dark" if dark else "light"
    zones = (
        (privacy.WEAK, privacy.VACUOUS, sweep_texts.WEAK, theme.WEAK[side], FAINTEST),
        (privacy.VACUOUS, math.inf, sweep_texts.VACUOUS, theme.LEAKING[side], FAINT),
    )
    for start, end, text, shade, opacity in zones:
        left = max(start, span[0])
        right = min(end, span[1])
        if left >= right:
            continue
        chart.add_vrect(left, right, fillcolor=shade, opacity=opacity, line_width=0, layer="below")
        if math.log10(right / left) > 0.22 * math.log10(span[1] / span[0]):  # wide enough for the label
            chart.add_annotation(
                x=math.log10(left * right) / 2, y=0.01, yref="paper", yanchor="bottom", text=text, showarrow=False,
                font={"color": shade, "size": 12},
            )  # fmt: skip


def _layout(up: tuple[float, float], dark: bool) -> dict[str, Any]:
    side = "dark" if dark else "light"
    common = paper(HEIGHT, dark)
    return {
        **common,
        "hovermode": "closest",
        "hoverlabel": {**common["hoverlabel"], "align": "left"},
        "dragmode": False,
        "margin": {**common["margin"], "b": 84},
        "xaxis": axis(dark),
        "yaxis": {**axis(dark), "range": list(up), "title": {"text": sweep_texts.ACCURACY, "font": {"size": 13}}},
        "annotations": [
            _end_note(0, "left", f"◀ {product.LESS_PROTECTION}", theme.LEAKING[side]),
            _end_note(1, "right", f"{product.MORE_PROTECTION} ▶", theme.INK[side]),
        ],
    }


def _end_note(x: int, anchor: str, text: str, colour: str) -> dict[str, Any]:
    """The note at one end of the horizontal axis: less protection, or more."""
    return {
        "x": x, "xref": "paper", "xanchor": anchor, "y": 0, "yref": "paper", "yanchor": "top", "yshift": -58,
        "text": text, "showarrow": False, "font": {"color": colour},
    }  # fmt: skip


def _padded(levels: Sequence[float]) -> tuple[float, float]:
    room = 0.06 * (levels[-1] - levels[0]) or 0.1 * levels[0] or 0.1
    return levels[0] - room, levels[-1] + room


def decades(low: float, high: float) -> list[float]:
    """Ticks of a log axis: 1, 2 and 5 times each power of ten below three decades, else powers of ten."""
    steps = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _transparent(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


# --- in words ----------------------------------------------------------------------------------------------


def describe_by_noise(frontier: Frontier) -> str:
    """The chart by noise in words, for visitors who cannot see it."""
    sentences = []
    for line in (*frontier.lines, *frontier.baselines):
        points = [f"{sweep_texts.noise(summary.noise)} {_percent(summary, frontier.own)}" for summary in line.points]
        sentences.append(f"{line.title}: {', '.join(points)}")
    head = f"{sweep_texts.BY_NOISE}, {privacy.PER[frontier.unit]}, more noise is more private"
    return f"{head}. {'; '.join(sentences)}"


def describe_by_epsilon(frontier: Frontier) -> str:
    """The chart by ε in words, for visitors who cannot see it."""
    sentences = []
    for line in frontier.lines:
        points = []
        for value, summary in _placed(line, lambda summary: shown_epsilon(summary, frontier.view)):
            points.append(f"ε {numbers.epsilon(value)} {_percent(summary, frontier.own)}")
        if points:
            sentences.append(f"{line.title}: {', '.join(points)}")
    terms = f"{privacy.PER[frontier.unit]}, {privacy.SEEN_BY[frontier.view]}"
    head = f"{sweep_texts.BY_EPSILON} {terms}, lower is more private"
    return f"{head}. {'; '.join(sentences) or sweep_texts.NONE_SHOWN}"


def _first(point: PlacedPoint) -> float:
    return point[0]


def _percent(summary: PointSummary, own: bool) -> str:
    return numbers.percent(summary.score(own))
