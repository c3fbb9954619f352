"""The smoothness chart: how similar the clients' last layers are in each class, before and after a smoothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.charts.base import Panel, PanelChoice, PanelChoices, PanelInfo, axis, line, paper
from app.charts.spectrum import ROUND, place, when
from app.texts import smoothing as smoothing_texts
from engine.events import Smoothed
from engine.results.smoothing import Smoothness, collect_smoothness, known_values

LABEL = "label"
SPREAD = 30.0  # above this ratio of the largest to the smallest value, the colour scale is logarithmic
HEAD_PX, GAP_PX, BARS_PX, FOOT_PX = 98, 92, 150, 46
SIGN = "▼"


def choices(info: Smoothness) -> tuple[PanelChoice, ...]:
    """The smoothing to show, and the class of the bars."""
    label = PanelChoice(LABEL, smoothing_texts.CLASS, info.names, info.names[info.label])
    return when(info.smoothings, info.place), label


def choose(info: Smoothness, answers: Mapping[str, str]) -> Smoothness:
    """The info with the visitor's choices applied."""
    return replace(info, place=place(info.smoothings, answers[ROUND]), label=info.names.index(answers[LABEL]))


# --- the chart: two heat maps above the accuracy on one class ----------------------------------------------


def draw(infos: Sequence[PanelInfo[Smoothness]], dark: bool) -> go.Figure:
    """Heat maps of the distances before and after, above bars of each client's accuracy on the chosen class."""
    info = infos[0].info
    rows = len(info.names)
    map_px = rows * 14 if rows > 12 else max(96, rows * 22)
    inner = map_px + GAP_PX + BARS_PX
    height = HEAD_PX + inner + FOOT_PX
    colour = str(line(infos[0].track, dark)["color"])
    layout = {
        **paper(height, dark),
        "margin": {"l": 8, "r": 8, "t": HEAD_PX, "b": FOOT_PX},
        "hovermode": "closest",
        "barmode": "group",
        "showlegend": False,
        "coloraxis": _colours(info, 1 - 8 / height, dark),
        "shapes": [*_frame(info, 1, dark), *_frame(info, 2, dark)],
        "annotations": [*_headings(info, inner, colour), *_axis_titles(inner, map_px)],
        **_axes(info, inner, map_px, dark),
    }
    return go.Figure([*_maps(info), *_bars(info, colour, dark)], layout)


def _maps(info: Smoothness) -> Iterator[dict[str, Any]]:
    least = min((value for value in _all_distances(info) if value > 0), default=1.0)
    logarithmic = _logarithmic(info)
    for column, (rows, moment) in enumerate(zip(info.selected.rough, ("before", "after"), strict=True), start=1):
        yield {
            "type": "heatmap", "xaxis": f"x{column}", "yaxis": f"y{column}", "coloraxis": "coloraxis",
            "x": [str(client) for client in info.selected.clients], "y": list(info.names), "xgap": 1, "ygap": 1,
            "z": [[_shade_value(value, least, logarithmic) for value in row] for row in rows],
            "customdata": rows, "hoverongaps": False,
            "hovertemplate": f"client %{{x}}, %{{y}}: %{{customdata:.3g}} {moment} smoothing<extra></extra>",
        }  # fmt: skip


def _shade_value(value: float | None, least: float, logarithmic: bool) -> float | None:
    """A distance on the colour scale. Zero has no logarithm and takes the smallest shade."""
    if value is None:
        return None
    return math.log10(max(value, least)) if logarithmic else float(value)


def _all_distances(info: Smoothness) -> list[float]:
    before, after = info.selected.rough
    return [*known_values(before), *known_values(after)]


def _logarithmic(info: Smoothness) -> bool:
    positive = [value for value in _all_distances(info) if value > 0]
    return bool(positive) and max(positive) > SPREAD * min(positive)


def _colours(info: Smoothness, y: float, dark: bool) -> dict[str, Any]:
    """One scale for both maps. It always spans at least a fifth of its largest value: near values look alike."""
    values = _all_distances(info)
    high = max(values, default=1.0) or 1.0
    if _logarithmic(info):
        low = min(value for value in values if value > 0)
        ticks = [low, math.sqrt(low * high), high]
        places = [math.log10(tick) for tick in ticks]
    else:
        low = min([*values, high * 0.8])
        ticks = [low, (low + high) / 2, high]
        places = ticks
    scale = theme.SHADES["dark" if dark else "light"]
    return {
        "cmin": places[0], "cmax": places[-1],
        "colorscale": [[index / (len(scale) - 1), shade] for index, shade in enumerate(scale)],
        "colorbar": {
            "orientation": "h", "thickness": 8, "len": 0.8, "x": 0.5, "xanchor": "center",
            "y": y, "yref": "container", "yanchor": "top", "ypad": 0,
            "title": {"text": smoothing_texts.FAR, "side": "top", "font": {"size": 13}},
            "tickvals": places, "ticktext": smoothing_texts.ends(ticks), "outlinewidth": 0,
        },
    }  # fmt: skip


def _frame(info: Smoothness, column: int, dark: bool) -> Iterator[dict[str, Any]]:
    """A frame around the row of the chosen class: ink with paper on both sides, visible on every shade."""
    side = "dark" if dark else "light"
    bounds = {"x0": -0.5, "x1": len(info.selected.clients) - 0.5, "y0": info.label - 0.5, "y1": info.label + 0.5}
    for width, colour in ((6, theme.PAPER[side]), (2, theme.INK[side])):
        stroke = {"color": colour, "width": width}
        yield {"type": "rect", "xref": f"x{column}", "yref": f"y{column}", **bounds, "line": stroke}


def _bars(info: Smoothness, colour: str, dark: bool) -> Iterator[dict[str, Any]]:
    """Hollow bars before, full bars after. A sign marks the clients that are much lower than the others."""
    side = "dark" if dark else "light"
    parts = zip(info.scores, info.low, ("before", "after"), (theme.PAPER[side], colour), strict=True)
    for scores, low, name, fill in parts:
        yield {
            "type": "bar", "xaxis": "x3", "yaxis": "y3", "name": name,
            "x": [str(client) for client in info.selected.clients],
            "marker": {"color": fill, "line": {"color": colour, "width": 1.5}},
            "y": [None if value is None else 100 * value for value in scores],
            "text": [SIGN if index in low else "" for index in range(len(scores))], "textposition": "outside",
            "textfont": {"color": theme.INK[side]}, "textangle": 0, "cliponaxis": False,
            "hovertemplate": f"client %{{x}}: %{{y:.1f}} % {name} smoothing %{{text}}<extra></extra>",
        }  # fmt: skip


def _headings(info: Smoothness, inner: int, colour: str) -> Iterator[dict[str, Any]]:
    """The headings of the three charts. They replace a legend, which would break over several lines."""
    shared: dict[str, Any] = {"xref": "paper", "yref": "paper", "showarrow": False, "yanchor": "bottom"}
    for x, text in ((0.235, "before smoothing"), (0.765, "after smoothing")):
        yield {**shared, "x": x, "y": 1, "xanchor": "center", "text": text}
    yield {**shared, "x": 0, "y": 1, "xanchor": "right", "xshift": -6, "text": "class"}
    signs = [f'<span style="color:{colour}">{sign}</span> {name}' for sign, name in (("□", "before"), ("■", "after"))]
    if any(info.low):
        signs.append(f"{SIGN} {smoothing_texts.LOW}")
    yield {
        **shared, "x": 0, "y": BARS_PX / inner, "xanchor": "left", "align": "left",
        "text": f"<b>{smoothing_texts.bars(info)}</b><br>{'   '.join(signs)}",
    }  # fmt: skip


def _axis_titles(inner: int, map_px: int) -> Iterator[dict[str, Any]]:
    """The titles of the horizontal axes, at a distance that the tick labels cannot reach."""
    low = 1 - map_px / inner
    for x, y, text in ((0.235, low, "client"), (0.765, low, "client"), (0.5, 0, smoothing_texts.PART)):
        position = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "top", "yshift": -20}
        yield {**position, "x": x, "y": y, "text": text, "showarrow": False}


def _axes(info: Smoothness, inner: int, map_px: int, dark: bool) -> dict[str, Any]:
    layout: dict[str, Any] = {}
    small = {"tickfont": {"size": 11}} if len(info.names) > 12 else {}
    names = [f"<b>{name}</b>" if label == info.label else name for label, name in enumerate(info.names)]
    rows = {"tickvals": list(range(len(names))), "ticktext": names, "ticks": "", **small}
    categories = {"type": "category", "showgrid": False}
    for column, domain in ((1, [0, 0.47]), (2, [0.53, 1])):
        across = {"domain": domain, "anchor": f"y{column}", **categories, **_client_ticks(info, 7)}
        up = {"domain": [1 - map_px / inner, 1], "anchor": f"x{column}", **categories, **rows}
        layout[f"xaxis{column}"] = {**axis(dark), **across, "range": [-0.5, len(info.selected.clients) - 0.5]}
        layout[f"yaxis{column}"] = {**axis(dark), **up, "range": [len(info.names) - 0.5, -0.5]}
    layout["yaxis2"]["showticklabels"] = False
    bars = {"domain": [0, 1], "anchor": "y3", **categories, **_client_ticks(info, 20)}
    layout["xaxis3"] = {**axis(dark), **bars}
    layout["yaxis3"] = {**axis(dark), "domain": [0, BARS_PX / inner], "anchor": "x3", "range": [0, 112], "dtick": 25}
    return layout


def _client_ticks(info: Smoothness, most: int) -> dict[str, Any]:
    """Ticks for at most `most` clients, so that no label covers the next one on a narrow screen."""
    clients = info.selected.clients
    most = most if max(clients) < 100 else most // 2
    shown = [str(client) for client in clients[:: math.ceil(len(clients) / most)]]
    return {"tickvals": shown, "ticktext": shown, "tickangle": 0, "tickfont": {"size": 11}, "ticks": ""}


def describe(infos: Sequence[PanelInfo[Smoothness]]) -> str:
    """The chart in words."""
    return smoothing_texts.smoothness_alt(infos[0].info)


PANEL = Panel(
    "smoothness", smoothing_texts.SMOOTHNESS, (Smoothed,), collect_smoothness, draw, describe,
    PanelChoices(choices, choose, smoothing_texts.smoothness_sentence),
)  # fmt: skip
