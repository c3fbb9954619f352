"""The frontier: accuracy by noise, and by ε in one view; a line for each method, and its seeds as a band."""

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
SYMBOLS = ("circle", "x-thin", "square", "diamond", "triangle-up", "star", "triangle-down", "pentagon")
ROOM = 1.25  # beyond the outermost points, on a log axis
WIDE = 6.0  # noises that lie further apart stand on a log axis
FAINTEST, FAINT = 0.07, 0.13  # of what lies where a promise says little, and nothing


@dataclass(frozen=True)
class TradeoffLine:
    """One method: a spot at each noise."""

    title: str
    method: str
    spots: tuple[PointSummary, ...]
    version: int = 0  # of several lines of the same method, which have one colour

    def look(self, dark: bool) -> dict[str, Any]:
        """The method's colour and shape; another version of it is broken and hollow."""
        order, colour = theme.ORDER, theme.colour(self.method, dark)
        shape = SYMBOLS[(order.index(self.method) if self.method in order else len(order)) % len(SYMBOLS)]
        line = {"color": colour, "width": 2.5, "dash": DASHES[self.version % len(DASHES)]}
        hollow = "-open" if self.version % 2 and not shape.endswith("-thin") else ""
        marker = {"symbol": shape + hollow, "size": 10, "color": colour, "line": {"width": 2, "color": colour}}
        return {"line": line, "marker": marker}


@dataclass(frozen=True)
class Frontier:
    """What is known of all methods that protect the same unit."""

    unit: str
    lines: tuple[TradeoffLine, ...]
    plain: tuple[TradeoffLine, ...]  # without protection: one spot each, for it has no noise
    view: str
    own: bool = False  # whether the clients' own models count, where there are some

    @property
    def spots(self) -> tuple[PointSummary, ...]:
        return tuple(spot for line in self.lines for spot in line.spots)

    @property
    def finite(self) -> bool:
        """Whether anything can be shown by ε."""
        return any(price(spot, self.view) for spot in self.spots)

    def values(self) -> list[float]:
        """Every accuracy, in %."""
        lines = (*self.lines, *self.plain)
        return [100 * value for line in lines for spot in line.spots for value in spot.scores(self.own)]


def price(spot: PointSummary, view: str) -> float | None:
    """ε where a log axis can show it."""
    found = spot.epsilon.get(view)
    return found if found else None


def heights(found: Sequence[Frontier]) -> tuple[float, float]:
    """One range of accuracy for every chart on the page, so that they can be held against each other."""
    values = [value for one in found for value in one.values()]
    if not values:
        return 0.0, 100.0
    return max(0.0, 10 * math.floor((min(values) - 5) / 10)), min(100.0, 10 * math.ceil((max(values) + 2) / 10))


# --- the two charts ----------------------------------------------------------------------------------------


def by_noise(found: Frontier, up: tuple[float, float], dark: bool) -> go.Figure:
    """More noise stands on the left: the private end is on the same side in every picture here."""
    levels = sorted({spot.noise for spot in found.spots if spot.noise is not None})
    log = bool(levels) and levels[0] > 0 and levels[-1] > WIDE * levels[0]
    traces = _traces(found, lambda spot: spot.noise, dark)
    drawn = go.Figure(traces, _layout(up, dark))
    if levels:
        ends = (levels[-1] * ROOM, levels[0] / ROOM) if log else _padded(levels)
        drawn.update_xaxes(
            type="log" if log else "linear", range=[math.log10(end) for end in ends] if log else ends,
            tickvals=levels, ticktext=[f"{level:g}" for level in levels],
        )  # fmt: skip
    drawn.update_xaxes(title={"text": sweep_texts.NOISE_AXIS})
    _reference(drawn, found, dark)
    return drawn


def by_epsilon(found: Frontier, up: tuple[float, float], dark: bool) -> go.Figure:
    drawn = go.Figure(_traces(found, lambda spot: price(spot, found.view), dark), _layout(up, dark))
    known = sorted(value for spot in found.spots if (value := price(spot, found.view)))
    if known:
        span = known[0] / ROOM**2, known[-1] * ROOM**2
        ticks = decades(*span)
        drawn.update_xaxes(
            type="log", range=[math.log10(end) for end in span], tickvals=ticks, ticktext=[f"{one:g}" for one in ticks]
        )
        _zones(drawn, span, dark)
    drawn.update_xaxes(title={"text": f"ε {privacy.PER[found.unit]}, {privacy.SEEN_BY[found.view]}"})
    _reference(drawn, found, dark)
    return drawn


def _traces(found: Frontier, across: Callable[[PointSummary], float | None], dark: bool) -> list[dict[str, Any]]:
    """First the bands, then the lines above them."""
    bands, lines = [], []
    for one in found.lines:
        placed = [(x, spot) for spot in one.spots if (x := across(spot)) is not None]
        placed.sort(key=lambda pair: pair[0])
        if placed:
            bands += _band(one, placed, found.own, dark)
            lines.append(_line(one, placed, found, dark))
    return [*bands, *lines]


def _line(
    one: TradeoffLine, placed: Sequence[tuple[float, PointSummary]], found: Frontier, dark: bool
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": one.title,
        "x": [x for x, _ in placed], "y": [100 * spot.score(found.own) for _, spot in placed],
        **one.look(dark),
        "text": [hover(one, spot, found) for _, spot in placed],
        "hovertemplate": "%{text}<extra></extra>",
        "customdata": [[spot.method, spot.noise] for _, spot in placed],
    }  # fmt: skip


def hover(one: TradeoffLine, spot: PointSummary, found: Frontier) -> str:
    """Everything about a point, in lines short enough for a chart."""
    told = sweep_texts.dearest(spot, found.view).replace(" (", "<br>", 1).removesuffix(")")
    parts = told.split(", ")
    rows = [", ".join(parts[place : place + 3]) for place in range(0, len(parts), 3)]
    head = sweep_texts.point(one.title, spot, found.own).replace(": ", "<br>", 1)
    return f"<b>{head.replace('<br>', '</b><br>', 1)}<br>" + ",<br>".join(rows)


def _band(
    one: TradeoffLine, placed: Sequence[tuple[float, PointSummary]], own: bool, dark: bool
) -> list[dict[str, Any]]:
    """From the worst seed to the best; a point alone has a bar instead."""
    several = [(x, spot) for x, spot in placed if spot.seeds > 1]
    if not several:
        return []
    low = [100 * min(spot.scores(own)) for _, spot in several]
    high = [100 * max(spot.scores(own)) for _, spot in several]
    across, colour = [x for x, _ in several], theme.colour(one.method, dark)
    quiet = {"hoverinfo": "skip", "showlegend": False, "type": "scatter", "mode": "lines"}
    if len(several) == 1:
        return [{**quiet, "x": across * 2, "y": [*low, *high], "line": {"color": colour, "width": 6}, "opacity": 0.3}]
    outline = {"x": [*across, *reversed(across)], "y": [*high, *reversed(low)], "line": {"width": 0}}
    return [{**quiet, **outline, "fill": "toself", "fillcolor": _clear(colour, 0.18)}]


def _reference(drawn: go.Figure, found: Frontier, dark: bool) -> None:
    """The same without protection: a level, since it has neither noise nor ε."""
    side = "dark" if dark else "light"
    for one in found.plain:
        for spot in one.spots:
            values = [100 * value for value in spot.scores(found.own)]
            mean = 100 * spot.score(found.own)
            if len(values) > 1:
                drawn.add_hrect(min(values), max(values), fillcolor=theme.LEAKING[side], opacity=0.14, line_width=0)
            drawn.add_hline(
                mean, line={"color": theme.LEAKING[side], "dash": "dash", "width": 2},
                annotation={
                    "text": f"{sweep_texts.NO_PROTECTION}, {mean:.1f} %", "font": {"color": theme.LEAKING[side]},
                    "x": 0.01, "xanchor": "left", "yanchor": "bottom",
                },
            )  # fmt: skip


def _zones(drawn: go.Figure, span: tuple[float, float], dark: bool) -> None:
    """Where a promise says nothing as a worst case, and where it is not worth its name."""
    side = "dark" if dark else "light"
    ends = (privacy.VACUOUS, privacy.NOTHING, math.inf)
    for start, end, text, opacity in zip(
        ends, ends[1:], (sweep_texts.VACUOUS, sweep_texts.NOTHING), (FAINTEST, FAINT), strict=False
    ):
        left, right = max(start, span[0]), min(end, span[1])
        if left >= right:
            continue
        drawn.add_vrect(left, right, fillcolor=theme.LEAKING[side], opacity=opacity, line_width=0, layer="below")
        if math.log10(right / left) > 0.22 * math.log10(span[1] / span[0]):  # else there is no room for words
            drawn.add_annotation(
                x=math.log10(left * right) / 2, y=0.01, yref="paper", yanchor="bottom", text=text, showarrow=False,
                font={"color": theme.LEAKING[side], "size": 12},
            )  # fmt: skip


def _layout(up: tuple[float, float], dark: bool) -> dict[str, Any]:
    side = "dark" if dark else "light"
    around = paper(HEIGHT, dark)
    ends = [
        (0, "left", f"◀ {product.PRIVATE_END}", theme.PRIVATE[side]),
        (1, "right", f"{product.LEAKY_END} ▶", theme.LEAKING[side]),
    ]
    notes = [
        {
            "x": x, "xref": "paper", "xanchor": anchor, "y": 0, "yref": "paper", "yanchor": "top", "yshift": -58,
            "text": text, "showarrow": False, "font": {"color": colour},
        }
        for x, anchor, text, colour in ends
    ]  # fmt: skip
    return {
        **around,
        "hovermode": "closest",
        "hoverlabel": {**around["hoverlabel"], "align": "left"},
        "dragmode": False,
        "margin": {**around["margin"], "b": 84},
        "xaxis": axis(dark),
        "yaxis": {**axis(dark), "range": list(up), "title": {"text": sweep_texts.ACCURACY, "font": {"size": 13}}},
        "annotations": notes,
    }


def _padded(levels: Sequence[float]) -> tuple[float, float]:
    room = 0.06 * (levels[-1] - levels[0]) or 0.1 * levels[0] or 0.1
    return levels[-1] + room, levels[0] - room


def decades(low: float, high: float) -> list[float]:
    """Ticks of a log axis: 1, 2, 5 where there are few, else whole powers of ten."""
    steps = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [found for power in powers for step in steps if low <= (found := float(f"{step}e{power}")) <= high]


def _clear(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


# --- in words ----------------------------------------------------------------------------------------------


def tell_noise(found: Frontier) -> str:
    """The chart by noise, for those who cannot see it."""
    said = [f"{line.title}: {', '.join(f'{_noise(spot)} {_percent(spot, found.own)}' for spot in line.spots)}"
            for line in (*found.lines, *found.plain)]  # fmt: skip
    return f"{sweep_texts.BY_NOISE}, {privacy.PER[found.unit]}, more noise is more private. {'; '.join(said)}"


def tell_epsilon(found: Frontier) -> str:
    said = []
    for line in found.lines:
        known = [(value, spot) for spot in line.spots if (value := price(spot, found.view))]
        each = [f"ε {numbers.epsilon(value)} {_percent(spot, found.own)}" for value, spot in sorted(known, key=_first)]
        said += [f"{line.title}: {', '.join(each)}"] if each else []
    head = f"{sweep_texts.BY_EPSILON} {privacy.PER[found.unit]}, {privacy.SEEN_BY[found.view]}, lower is more private"
    return f"{head}. {'; '.join(said) or sweep_texts.NONE_SHOWN}"


def _first(pair: tuple[float, PointSummary]) -> float:
    return pair[0]


def _noise(spot: PointSummary) -> str:
    return sweep_texts.noise(spot.noise)


def _percent(spot: PointSummary, own: bool) -> str:
    return numbers.percent(spot.score(own))
