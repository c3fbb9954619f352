"""ε by round, a small chart for each view: what each onlooker has learned so far, at worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app import words
from app.panels.base import Drawn, Panel, figure, line, thinned
from engine.events import Event, Round, Spent


@dataclass(frozen=True)
class Bills:
    """ε after each round by view; a view without a finite number is left out."""

    views: Mapping[str, tuple[tuple[int, float], ...]]
    final: Mapping[str, tuple[int, float]]  # the tighter number at the end, where there is one
    of: int  # rounds that were asked for


def collect(events: Sequence[Event]) -> Bills | None:
    found: dict[str, dict[int, float]] = {}
    final: dict[str, tuple[int, float]] = {}
    for event in events:
        if isinstance(event, Spent) and event.epsilon is not None:
            rounds = found.setdefault(event.view, {})
            if event.round in rounds and event.epsilon < rounds[event.round]:
                final[event.view] = (event.round, event.epsilon)
            else:
                rounds[event.round] = event.epsilon
    if not found:
        return None
    of = max((event.of for event in events if isinstance(event, Round)), default=1)
    return Bills({view: tuple(sorted(found[view].items())) for view in words.VIEWS if view in found}, final, of)


def draw(found: Sequence[Drawn[Bills]], dark: bool) -> go.Figure:
    views = [view for view in words.VIEWS if any(view in one.info.views for one in found)]
    titles = [words.OBSERVERS[view] for view in views]
    drawn = make_subplots(1, len(views), shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.03)
    drawn.update_layout(figure(210, dark).layout)
    drawn.update_layout(showlegend=False, margin={"t": 34})
    for column, view in enumerate(views, start=1):
        for one in found:
            if one.track.role in ("seed", "twin") or view not in one.info.views:
                continue
            points = one.info.views[view]
            at = thinned(len(points))
            drawn.add_scatter(
                x=[points[place][0] for place in at],
                y=[points[place][1] for place in at],
                name=one.track.label,
                mode="lines" if len(at) > 2 else "lines+markers",
                line=line(one.track, dark),
                hovertemplate="ε %{y:.3g}",
                row=1,
                col=column,
            )
            if view in one.info.final:
                round, value = one.info.final[view]
                drawn.add_scatter(
                    x=[round],
                    y=[value],
                    name=f"{one.track.label}, counted more tightly at the end",
                    mode="markers",
                    marker={"color": line(one.track, dark)["color"], "size": 8, "symbol": "diamond"},
                    hovertemplate="ε %{y:.3g}",
                    row=1,
                    col=column,
                )
    axis = figure(210, dark).layout
    last = max(one.info.of for one in found)
    drawn.update_xaxes(axis.xaxis.to_plotly_json(), tickformat="d", range=[0.5, max(last, 2) + 0.5])
    drawn.update_yaxes(axis.yaxis.to_plotly_json(), type="log", dtick=1)
    drawn.update_yaxes(title="ε so far", col=1)
    drawn.update_annotations(font_size=13)
    return drawn


def tell(found: Sequence[Drawn[Bills]]) -> str:
    said = [
        f"{one.track.label}, {words.SEEN_BY[view]}: ε {words.epsilon(one.info.final.get(view, points[-1])[1])} "
        f"after round {points[-1][0]}"
        for one in found
        if one.track.role in ("main", "pin")
        for view, points in one.info.views.items()
    ]
    return "Privacy spent by round, lower is more private. " + "; ".join(said)


PANEL = Panel("epsilon", "ε by round, as seen by each observer; lower is more private", (Spent,), collect, draw, tell)
