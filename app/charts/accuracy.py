"""The accuracy chart: the run, its seeds as a band, its baseline and the pinned runs, by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, figure, line, thinned, without_seeds
from app.texts import numbers
from engine.events import Event, Measured, Round

BANDS = (("main", "seed"), ("other", "other seed"))  # the roles of the runs of each side


@dataclass(frozen=True)
class AccuracyCurve:
    """One run's accuracy after each round."""

    rounds: tuple[int, ...]
    values: tuple[float, ...]
    of: int  # rounds requested
    personal: tuple[float, ...] = ()  # the mean over clients, if the method has personal models


def collect(events: Sequence[Event]) -> AccuracyCurve | None:
    """The global accuracy by round. The personal accuracy is kept only if every round has one."""
    overall = _by_round(events, "global")
    if not overall:
        return None
    own = _by_round(events, "personal")
    rounds = tuple(sorted(overall))
    values = tuple(overall[round] for round in rounds)
    personal = tuple(own[round] for round in rounds) if set(rounds) <= set(own) else ()
    of = max((event.of for event in events if isinstance(event, Round)), default=rounds[-1])
    return AccuracyCurve(rounds, values, of, personal)


def _by_round(events: Sequence[Event], who: str) -> dict[int, float]:
    scores = {}
    for event in events:
        if isinstance(event, Measured) and event.name == "accuracy" and event.who == who and event.value is not None:
            scores[event.round] = event.value
    return scores


def draw(infos: Sequence[PanelInfo[AccuracyCurve]], dark: bool) -> go.Figure:
    """A line for each run; a dotted line for its personal accuracy; a band for the seeds of each side."""
    chart = figure(330, dark)
    sides = [[entry for entry in infos if entry.track.role in roles] for roles in BANDS]
    for side in sides:
        band(chart, side, of_side=all(len(each) > 1 for each in sides))
    for entry in without_seeds(infos):
        curve = entry.info
        label = entry.track.label
        style = line(entry.track, dark)
        few = len(thinned(len(curve.rounds))) < 3
        _add_line(chart, label, curve.rounds, curve.values, style, "lines+markers" if few else "lines")
        if curve.personal:
            dotted = {**style, "dash": "dot"}
            _add_line(chart, f"{label}, personal", curve.rounds, curve.personal, dotted, "lines")
    last = max(entry.info.of for entry in infos)
    chart.update_xaxes(title="round", range=[0.5, max(last, 2) + 0.5], tickformat="d")
    chart.update_yaxes(title="accuracy on test data, %", range=[0, 100])
    return chart


def _add_line(
    chart: go.Figure, name: str, rounds: Sequence[int], values: Sequence[float], style: dict[str, Any], mode: str
) -> None:
    places = thinned(len(rounds))
    chart.add_scatter(
        x=[rounds[place] for place in places],
        y=[100 * values[place] for place in places],
        name=name,
        mode=mode,
        line=style,
        hovertemplate="%{y:.1f} %",
    )


def band(chart: go.Figure, seeds: Sequence[PanelInfo[AccuracyCurve]], of_side: bool = False) -> None:
    """Adds the area between the worst and the best seed, in the rounds that all seeds have finished.

    `of_side`: whether its name says whose seeds they are, because there are two bands.
    """
    if len(seeds) < 2:
        return
    rounds = min((entry.info.rounds for entry in seeds), key=len)
    curves = [dict(zip(entry.info.rounds, entry.info.values, strict=True)) for entry in seeds]
    columns = [[100 * curve[round] for curve in curves] for round in rounds]  # round x seed
    colour = line(seeds[0].track, False)["color"]
    name = f"{len(seeds)} seeds, worst to best"
    chart.add_scatter(
        x=[*rounds, *reversed(rounds)],
        y=[*map(max, columns), *map(min, reversed(columns))],
        fill="toself",
        fillcolor=f"rgba({int(colour[1:3], 16)},{int(colour[3:5], 16)},{int(colour[5:7], 16)},0.22)",
        line={"width": 0},
        name=f"{seeds[0].track.label}: {name}" if of_side else name,
        hoverinfo="skip",
    )


def describe(infos: Sequence[PanelInfo[AccuracyCurve]]) -> str:
    """The last accuracy of each run."""
    sentences = []
    for entry in without_seeds(infos):
        curve = entry.info
        accuracy = numbers.percent(curve.values[-1])
        sentences.append(f"{entry.track.label}: {accuracy} after round {curve.rounds[-1]}")
    return "Accuracy by round. " + "; ".join(sentences)


PANEL = Panel("accuracy", "Accuracy by round", (Measured,), collect, draw, describe)
