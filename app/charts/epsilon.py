"""ε by round, a small chart for each view, and a row of them for each thing that is protected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, axis, line, paper, thinned
from app.texts import numbers, privacy
from engine.events import Event, Round, Spent

SPACE = 0.03  # between two charts
HEIGHT = 210  # of a row


@dataclass(frozen=True)
class EpsilonCurves:
    """ε after each round by view; a view without a finite number is left out."""

    views: Mapping[str, tuple[tuple[int, float], ...]]
    final: Mapping[str, tuple[int, float]]  # the tighter number at the end, where there is one
    of: int  # rounds that were asked for
    unit: str = "user"  # what is protected


def collect(events: Sequence[Event]) -> EpsilonCurves | None:
    found: dict[str, dict[int, float]] = {}
    units: set[str] = set()
    final: dict[str, tuple[int, float]] = {}
    for event in events:
        if isinstance(event, Spent) and event.epsilon is not None:
            units.add(event.unit)
            rounds = found.setdefault(event.view, {})
            if event.round in rounds and event.epsilon < rounds[event.round]:
                final[event.view] = (event.round, event.epsilon)
            else:
                rounds[event.round] = event.epsilon
    if not found:
        return None
    of = max((event.of for event in events if isinstance(event, Round)), default=1)
    return EpsilonCurves(
        {view: tuple(sorted(found[view].items())) for view in privacy.VIEWS if view in found}, final, of, *units
    )


def draw(found: Sequence[PanelInfo[EpsilonCurves]], dark: bool) -> go.Figure:
    """Built as one table: asking Plotly to change a figure bit by bit takes ten times as long."""
    units = list(dict.fromkeys(one.info.unit for one in found))
    views = [view for view in privacy.VIEWS if any(view in one.info.views for one in found)]
    lines = [
        trace
        for one in found
        for column, view in enumerate(views)
        if one.track.role not in ("seed", "twin") and view in one.info.views
        for trace in _lines(one, view, 1 + column + len(views) * units.index(one.info.unit), dark)
    ]
    around = paper(HEIGHT * len(units), dark)
    last = max(one.info.of for one in found)
    layout = {**around, "showlegend": False, "margin": {**around["margin"], "t": 34}, **_axes(units, views, last, dark)}
    return go.Figure(lines, layout)


def _lines(one: PanelInfo[EpsilonCurves], view: str, cell: int, dark: bool) -> Iterator[dict[str, Any]]:
    points, style = one.info.views[view], line(one.track, dark)
    at = thinned(len(points))
    where = {"type": "scatter", "xaxis": f"x{cell}", "yaxis": f"y{cell}", "hovertemplate": "ε %{y:.3g}"}
    yield {
        **where,
        "x": [points[place][0] for place in at],
        "y": [points[place][1] for place in at],
        "name": one.track.label,
        "mode": "lines" if len(at) > 2 else "lines+markers",
        "line": style,
    }
    if view in one.info.final:
        round, value = one.info.final[view]
        name = f"{one.track.label}, counted more tightly at the end"
        marker = {"color": style["color"], "size": 8, "symbol": "diamond"}
        yield {**where, "x": [round], "y": [value], "name": name, "mode": "markers", "marker": marker}


def _axes(units: Sequence[str], views: Sequence[str], last: int, dark: bool) -> dict[str, Any]:
    """A pair of axes for each view, side by side, in a row for each unit: no axis of heights serves two units."""
    found: dict[str, Any] = {"annotations": []}
    wide, gap = (1 - SPACE * (len(views) - 1)) / len(views), 50 / (HEIGHT * len(units))
    high = (1 - gap * (len(units) - 1)) / len(units)
    for row, unit in enumerate(units):
        first, top = 1 + row * len(views), 1 - row * (high + gap)
        for column, view in enumerate(views):
            cell, begin = first + column, column * (wide + SPACE)
            place, front = (str(one) if one > 1 else "" for one in (cell, first))
            across = {"domain": [begin, begin + wide], "anchor": f"y{place}"}
            found[f"xaxis{place}"] = {**axis(dark), **across, "tickformat": "d", "range": [0.5, max(last, 2) + 0.5]}
            up = {"type": "log", "dtick": 1, "domain": [max(top - high, 0), top], "anchor": f"x{place}"}
            names = {"matches": f"y{front}", "showticklabels": False}
            heading = {"title": {"text": "ε so far" if len(units) == 1 else f"ε {privacy.PER[unit]}"}}
            found[f"yaxis{place}"] = {**axis(dark), **up, **(names if column else heading)}
            found["annotations"].append(
                {
                    "text": privacy.OBSERVERS[view], "x": begin + wide / 2, "y": top, "xref": "paper", "yref": "paper",
                    "xanchor": "center", "yanchor": "bottom", "showarrow": False, "font": {"size": 13},
                }
            )  # fmt: skip
    return found


def describe(found: Sequence[PanelInfo[EpsilonCurves]]) -> str:
    said = [
        f"{one.track.label}, {privacy.SEEN_BY[view]}: ε {numbers.epsilon(one.info.final.get(view, points[-1])[1])} "
        f"{privacy.PER[one.info.unit]} after round {points[-1][0]}"
        for one in found
        if one.track.role in ("main", "pin")
        for view, points in one.info.views.items()
    ]
    return "Privacy spent by round, lower is more private. " + "; ".join(said)


PANEL = Panel(
    "epsilon", "ε by round, as seen by each observer; lower is more private", (Spent,), collect, draw, describe
)
