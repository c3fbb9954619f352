"""Semantic smoothness: how alike the clients' pictures of each class are, before and after a smoothing."""

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
from engine.results.smoothing import Smoothness, _known, collect_smoothness

LABEL = "label"
SPREAD = 30.0  # where the largest is so many times the smallest, colours go by powers
HEAD_PX, GAP_PX, BARS_PX, FOOT_PX = 98, 92, 150, 46
SIGN = "▼"


def choices(info: Smoothness) -> tuple[PanelChoice, ...]:
    return when(info.told, info.at), PanelChoice(LABEL, smoothing_texts.CLASS, info.names, info.names[info.label])


def choose(info: Smoothness, answers: Mapping[str, str]) -> Smoothness:
    return replace(info, at=place(info.told, answers[ROUND]), label=info.names.index(answers[LABEL]))


# --- the chart: two heat maps, and below them the accuracy on one class ----------------------------------------------


def draw(found: Sequence[PanelInfo[Smoothness]], dark: bool) -> go.Figure:
    info, track = found[0].info, found[0].track
    rows = len(info.names)
    map_px = rows * 14 if rows > 12 else max(96, rows * 22)
    inner = map_px + GAP_PX + BARS_PX
    colour = str(line(track, dark)["color"])
    layout = {
        **paper(HEAD_PX + inner + FOOT_PX, dark),
        "margin": {"l": 8, "r": 8, "t": HEAD_PX, "b": FOOT_PX},
        "hovermode": "closest",
        "barmode": "group",
        "showlegend": False,
        "coloraxis": _colours(info, 1 - 8 / (HEAD_PX + inner + FOOT_PX), dark),
        "shapes": [frame for column in (1, 2) for frame in _frame(info, column, dark)],
        "annotations": [*_notes(info, inner, colour), *_under(inner, map_px)],
        **_axes(info, inner, map_px, dark),
    }
    return go.Figure([*_maps(info), *_bars(info, colour, dark)], layout)


def _maps(info: Smoothness) -> Iterator[dict[str, Any]]:
    least = min((value for value in _both(info) if value > 0), default=1.0)
    height = (lambda value: math.log10(max(value, least))) if _by_powers(info) else float
    for column, (rows, when_) in enumerate(zip(info.now.rough, ("before", "after"), strict=True), start=1):
        yield {
            "type": "heatmap", "xaxis": f"x{column}", "yaxis": f"y{column}", "coloraxis": "coloraxis",
            "x": [str(client) for client in info.now.clients], "y": list(info.names), "xgap": 1, "ygap": 1,
            "z": [[None if value is None else height(value) for value in row] for row in rows],
            "customdata": rows, "hoverongaps": False,
            "hovertemplate": f"client %{{x}}, %{{y}}: %{{customdata:.3g}} {when_} smoothing<extra></extra>",
        }  # fmt: skip


def _both(info: Smoothness) -> list[float]:
    return [value for rows in info.now.rough for value in _known(rows)]


def _by_powers(info: Smoothness) -> bool:
    shown = [value for value in _both(info) if value > 0]
    return bool(shown) and max(shown) > SPREAD * min(shown)


def _colours(info: Smoothness, y: float, dark: bool) -> dict[str, Any]:
    """One scale for both maps; what is nearly the same is not torn apart."""
    values = _both(info)
    high = max(values, default=1.0) or 1.0
    powers = _by_powers(info)
    low = min(value for value in values if value > 0) if powers else min([*values, high * 0.8])
    ticks = (low, math.sqrt(low * high) if powers else (low + high) / 2, high)
    places = [math.log10(one) for one in ticks] if powers else list(ticks)
    scale = theme.SHADES["dark" if dark else "light"]
    return {
        "cmin": places[0], "cmax": places[-1],
        "colorscale": [[at / (len(scale) - 1), one] for at, one in enumerate(scale)],
        "colorbar": {
            "orientation": "h", "thickness": 8, "len": 0.8, "x": 0.5, "xanchor": "center",
            "y": y, "yref": "container", "yanchor": "top", "ypad": 0,
            "title": {"text": smoothing_texts.FAR, "side": "top", "font": {"size": 13}},
            "tickvals": places, "ticktext": smoothing_texts.ends(ticks), "outlinewidth": 0,
        },
    }  # fmt: skip


def _frame(info: Smoothness, column: int, dark: bool) -> Iterator[dict[str, Any]]:
    """Around the row of the chosen class: ink with paper on both sides, to be seen on every shade."""
    side = "dark" if dark else "light"
    where = {"type": "rect", "xref": f"x{column}", "yref": f"y{column}", "x0": -0.5, "x1": len(info.now.clients) - 0.5}
    for width, colour in ((6, theme.PAPER[side]), (2, theme.INK[side])):
        stroke = {"color": colour, "width": width}
        yield {**where, "y0": info.label - 0.5, "y1": info.label + 0.5, "line": stroke}


def _bars(info: Smoothness, colour: str, dark: bool) -> Iterator[dict[str, Any]]:
    """Hollow before and full after; a sign stands over clients that are much lower than the others."""
    side = "dark" if dark else "light"
    for scores, low, name, fill in zip(
        info.scores, info.low, ("before", "after"), (theme.PAPER[side], colour), strict=True
    ):
        marker = {"color": fill, "line": {"color": colour, "width": 1.5}}
        where = {"type": "bar", "xaxis": "x3", "yaxis": "y3", "name": name}
        yield {
            **where, "x": [str(client) for client in info.now.clients], "marker": marker,
            "y": [None if value is None else 100 * value for value in scores],
            "text": [SIGN if at in low else "" for at in range(len(scores))], "textposition": "outside",
            "textfont": {"color": theme.INK[side]}, "textangle": 0, "cliponaxis": False,
            "hovertemplate": f"client %{{x}}: %{{y:.1f}} % {name} smoothing %{{text}}<extra></extra>",
        }  # fmt: skip


def _notes(info: Smoothness, inner: int, colour: str) -> Iterator[dict[str, Any]]:
    """What stands over each of the three charts; a legend would break over several lines."""
    shared: dict[str, Any] = {"xref": "paper", "yref": "paper", "showarrow": False, "yanchor": "bottom"}
    for x, text in ((0.235, "before smoothing"), (0.765, "after smoothing")):
        yield {**shared, "x": x, "y": 1, "xanchor": "center", "text": text}
    yield {**shared, "x": 0, "y": 1, "xanchor": "right", "xshift": -6, "text": "class"}
    signs = [f'<span style="color:{colour}">{sign}</span> {name}' for sign, name in (("□", "before"), ("■", "after"))]
    signs += [f"{SIGN} {smoothing_texts.LOW}"] if any(info.low) else []
    yield {
        **shared, "x": 0, "y": BARS_PX / inner, "xanchor": "left", "align": "left",
        "text": f"<b>{smoothing_texts.bars(info)}</b><br>{'   '.join(signs)}",
    }  # fmt: skip


def _under(inner: int, map_px: int) -> Iterator[dict[str, Any]]:
    """The titles of the axes across, at a distance that labels cannot fill."""
    low = 1 - map_px / inner
    for x, y, text in ((0.235, low, "client"), (0.765, low, "client"), (0.5, 0, smoothing_texts.PART)):
        where = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "top", "yshift": -20}
        yield {**where, "x": x, "y": y, "text": text, "showarrow": False}


def _axes(info: Smoothness, inner: int, map_px: int, dark: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    small = {"tickfont": {"size": 11}} if len(info.names) > 12 else {}
    names = [f"<b>{name}</b>" if label == info.label else name for label, name in enumerate(info.names)]
    rows = {"tickvals": list(range(len(names))), "ticktext": names, "ticks": "", **small}
    plain = {"type": "category", "showgrid": False}
    for column, domain in ((1, [0, 0.47]), (2, [0.53, 1])):
        across = {"domain": domain, "anchor": f"y{column}", **plain, **_ids(info, 7)}
        up = {"domain": [1 - map_px / inner, 1], "anchor": f"x{column}", **plain, **rows}
        found[f"xaxis{column}"] = {**axis(dark), **across, "range": [-0.5, len(info.now.clients) - 0.5]}
        found[f"yaxis{column}"] = {**axis(dark), **up, "range": [len(info.names) - 0.5, -0.5]}
    found["yaxis2"]["showticklabels"] = False
    found["xaxis3"] = {**axis(dark), "domain": [0, 1], "anchor": "y3", **plain, **_ids(info, 20)}
    found["yaxis3"] = {**axis(dark), "domain": [0, BARS_PX / inner], "anchor": "x3", "range": [0, 112], "dtick": 25}
    return found


def _ids(info: Smoothness, most: int) -> dict[str, Any]:
    """So many clients by name that even on a narrow screen none covers its neighbour."""
    clients = info.now.clients
    most = most if max(clients) < 100 else most // 2
    shown = [str(client) for client in clients[:: math.ceil(len(clients) / most)]]
    return {"tickvals": shown, "ticktext": shown, "tickangle": 0, "tickfont": {"size": 11}, "ticks": ""}


def describe(found: Sequence[PanelInfo[Smoothness]]) -> str:
    return smoothing_texts.smoothness_alt(found[0].info)


PANEL = Panel(
    "smoothness", smoothing_texts.SMOOTHNESS, (Smoothed,), collect_smoothness, draw, describe,
    PanelChoices(choices, choose, smoothing_texts.brought),
)  # fmt: skip
