"""Accuracy by round: the run, its seeds as a band, its twin without protection, and what is pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, figure, line, thinned
from app.texts import numbers
from engine.events import Event, Measured, Round


@dataclass(frozen=True)
class AccuracyCurve:
    """One run's accuracy after each round."""

    rounds: tuple[int, ...]
    values: tuple[float, ...]
    of: int  # rounds that were asked for
    personal: tuple[float, ...] = ()  # the mean over clients, where a method has personal models


def collect(events: Sequence[Event]) -> AccuracyCurve | None:
    scores = [event for event in events if isinstance(event, Measured) and event.name == "accuracy"]
    overall = {event.round: event.value for event in scores if event.who == "global" and event.value is not None}
    if not overall:
        return None
    own = {event.round: event.value for event in scores if event.who == "personal" and event.value is not None}
    rounds = tuple(sorted(overall))
    personal = tuple(own[one] for one in rounds) if set(rounds) <= set(own) else ()
    of = max((event.of for event in events if isinstance(event, Round)), default=rounds[-1])
    return AccuracyCurve(rounds, tuple(overall[one] for one in rounds), of, personal)


def draw(found: Sequence[PanelInfo[AccuracyCurve]], dark: bool) -> go.Figure:
    drawn = figure(330, dark)
    band(drawn, [one for one in found if one.track.role in ("main", "seed")])
    for one in found:
        if one.track.role == "seed":
            continue
        at = thinned(len(one.info.rounds))
        style = line(one.track, dark)
        few = len(at) < 3
        drawn.add_scatter(
            x=[one.info.rounds[place] for place in at],
            y=[100 * one.info.values[place] for place in at],
            name=one.track.label,
            mode="lines+markers" if few else "lines",
            line=style,
            hovertemplate="%{y:.1f} %",
        )
        if one.info.personal:
            drawn.add_scatter(
                x=[one.info.rounds[place] for place in at],
                y=[100 * one.info.personal[place] for place in at],
                name=f"{one.track.label}, personal",
                mode="lines",
                line={**style, "dash": "dot"},
                hovertemplate="%{y:.1f} %",
            )
    last = max(one.info.of for one in found)
    drawn.update_xaxes(title="round", range=[0.5, max(last, 2) + 0.5], tickformat="d")
    drawn.update_yaxes(title="accuracy on test data, %", range=[0, 100])
    return drawn


def band(drawn: go.Figure, seeds: Sequence[PanelInfo[AccuracyCurve]]) -> None:
    """Between the worst and the best seed, in the rounds that all of them have done."""
    if len(seeds) < 2:
        return
    shared = min((one.info.rounds for one in seeds), key=len)
    columns = [[100 * dict(zip(one.info.rounds, one.info.values, strict=True))[at] for one in seeds] for at in shared]
    colour = line(seeds[0].track, False)["color"]
    drawn.add_scatter(
        x=[*shared, *reversed(shared)],
        y=[*map(max, columns), *map(min, reversed(columns))],
        fill="toself",
        fillcolor=f"rgba({int(colour[1:3], 16)},{int(colour[3:5], 16)},{int(colour[5:7], 16)},0.22)",
        line={"width": 0},
        name=f"{len(seeds)} seeds, worst to best",
        hoverinfo="skip",
    )


def describe(found: Sequence[PanelInfo[AccuracyCurve]]) -> str:
    said = [
        f"{one.track.label}: {numbers.percent(one.info.values[-1])} after round {one.info.rounds[-1]}"
        for one in found
        if one.track.role != "seed"
    ]
    return "Accuracy by round. " + "; ".join(said)


PANEL = Panel("accuracy", "Accuracy by round", (Measured,), collect, draw, describe)
