"""The ε chart: ε by round, with one small chart for each view and one row for each protected unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, axis, line, paper, thinned
from app.texts import numbers, privacy
from engine.events import Event, Round, Spent

SPACE = 0.03  # between two charts, as a fraction of the width
HEIGHT = 210  # of a row, in pixels


@dataclass(frozen=True)
class EpsilonCurves:
    """ε after each round, by view. A view without a finite ε is left out."""

    views: Mapping[str, tuple[tuple[int, float], ...]]  # (round, ε) by view
    final: Mapping[str, tuple[int, float]]  # the tighter ε at the end, for the views that have one
    of: int  # rounds requested
    unit: str = "user"  # the protected unit


def collect(events: Sequence[Event]) -> EpsilonCurves | None:
    """The ε of each round. A second, smaller ε of the same round is the tighter count at the end of the run."""
    by_view: dict[str, dict[int, float]] = {}
    units: set[str] = set()
    final: dict[str, tuple[int, float]] = {}
    for event in events:
        if isinstance(event, Spent) and event.epsilon is not None:
            units.add(event.unit)
            rounds = by_view.setdefault(event.view, {})
            if event.round in rounds and event.epsilon < rounds[event.round]:
                final[event.view] = (event.round, event.epsilon)
            else:
                rounds[event.round] = event.epsilon
    if not by_view:
        return None
    of = max((event.of for event in events if isinstance(event, Round)), default=1)
    views = {view: tuple(sorted(by_view[view].items())) for view in privacy.VIEWS if view in by_view}
    return EpsilonCurves(views, final, of, *units)


def draw(infos: Sequence[PanelInfo[EpsilonCurves]], dark: bool) -> go.Figure:
    """One cell for each view and unit. Building all traces at once is ten times faster than adding them to a figure."""
    units = list(dict.fromkeys(entry.info.unit for entry in infos))
    views = [view for view in privacy.VIEWS if any(view in entry.info.views for entry in infos)]
    traces: list[dict[str, Any]] = []
    for entry in infos:
        if entry.track.role in ("seed", "other seed", "baseline"):
            continue
        first = 1 + len(views) * units.index(entry.info.unit)
        for column, view in enumerate(views):
            if view in entry.info.views:
                traces += _traces(entry, view, first + column, dark)
    common = paper(HEIGHT * len(units), dark)
    last = max(entry.info.of for entry in infos)
    margin = {**common["margin"], "t": 34}
    layout = {**common, "showlegend": False, "margin": margin, **_axes(units, views, last, dark)}
    return go.Figure(traces, layout)


def _traces(entry: PanelInfo[EpsilonCurves], view: str, cell: int, dark: bool) -> Iterator[dict[str, Any]]:
    """The curve of one run in one view and, if there is one, the mark of its tighter ε at the end."""
    points = entry.info.views[view]
    style = line(entry.track, dark)
    places = thinned(len(points))
    common = {"type": "scatter", "xaxis": f"x{cell}", "yaxis": f"y{cell}", "hovertemplate": "ε %{y:.3g}"}
    yield {
        **common,
        "x": [points[place][0] for place in places],
        "y": [points[place][1] for place in places],
        "name": entry.track.label,
        "mode": "lines" if len(places) > 2 else "lines+markers",
        "line": style,
    }
    if view in entry.info.final:
        round, value = entry.info.final[view]
        name = f"{entry.track.label}, counted more tightly at the end"
        marker = {"color": style["color"], "size": 8, "symbol": "diamond"}
        yield {**common, "x": [round], "y": [value], "name": name, "mode": "markers", "marker": marker}


def _axes(units: Sequence[str], views: Sequence[str], last: int, dark: bool) -> dict[str, Any]:
    """A pair of axes for each view in each unit's row. Two units never share an ε axis: their ε do not compare."""
    layout: dict[str, Any] = {"annotations": []}
    width = (1 - SPACE * (len(views) - 1)) / len(views)
    gap = 50 / (HEIGHT * len(units))
    height = (1 - gap * (len(units) - 1)) / len(units)
    for row, unit in enumerate(units):
        first = 1 + row * len(views)  # the first cell of this row
        top = 1 - row * (height + gap)
        title = "ε so far" if len(units) == 1 else f"ε {privacy.PER[unit]}"
        for column, view in enumerate(views):
            cell = _suffix(first + column)
            left = column * (width + SPACE)
            across = {"domain": [left, left + width], "anchor": f"y{cell}", "tickformat": "d"}
            layout[f"xaxis{cell}"] = {**axis(dark), **across, "range": [0.5, max(last, 2) + 0.5]}
            up = {"type": "log", "dtick": 1, "domain": [max(top - height, 0), top], "anchor": f"x{cell}"}
            shared = {"matches": f"y{_suffix(first)}", "showticklabels": False}
            layout[f"yaxis{cell}"] = {**axis(dark), **up, **(shared if column else {"title": {"text": title}})}
            layout["annotations"].append(
                {
                    "text": privacy.OBSERVERS[view], "x": left + width / 2, "y": top, "xref": "paper", "yref": "paper",
                    "xanchor": "center", "yanchor": "bottom", "showarrow": False, "font": {"size": 13},
                }
            )  # fmt: skip
    return layout


def _suffix(cell: int) -> str:
    """Plotly's names of axes: `x`, `x2`, `x3`."""
    return str(cell) if cell > 1 else ""


def describe(infos: Sequence[PanelInfo[EpsilonCurves]]) -> str:
    """The last ε of each run in each view."""
    sentences = []
    for entry in infos:
        if entry.track.role not in ("main", "other", "pin"):
            continue
        curves = entry.info
        for view, points in curves.views.items():
            round, value = points[-1]
            epsilon = numbers.epsilon(curves.final.get(view, (round, value))[1])
            label = f"{entry.track.label}, {privacy.SEEN_BY[view]}"
            sentences.append(f"{label}: ε {epsilon} {privacy.PER[curves.unit]} after round {round}")
    return "Privacy spent by round, lower is more private. " + "; ".join(sentences)


PANEL = Panel(
    "epsilon", "ε by round, as seen by each observer; lower is more private", (Spent,), collect, draw, describe
)
