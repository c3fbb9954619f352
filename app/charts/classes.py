"""Accuracy of each class at the end: who pays for protection is not always everybody alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, figure, line
from app.texts import numbers
from engine.events import Event, Measured, Started

PATTERNS = ("", ".", "x", "|", "-")  # of the run itself, and of the pinned in turn


@dataclass(frozen=True)
class Classes:
    """Accuracy by class after the last round."""

    labels: tuple[str, ...]
    values: tuple[float | None, ...]


def collect(events: Sequence[Event]) -> Classes | None:
    found = {
        event.who.removeprefix("class "): event.value
        for event in events
        if isinstance(event, Measured) and event.name == "accuracy" and event.who.startswith("class ")
    }
    if not found:
        return None
    begun = next((event for event in events if isinstance(event, Started)), None)
    names = begun.facts.get("classes", ()) if begun else ()
    labels = [names[int(place)] if int(place) < len(names) else f"class {place}" for place in found]
    return Classes(tuple(labels), tuple(found.values()))


def draw(found: Sequence[PanelInfo[Classes]], dark: bool) -> go.Figure:
    drawn = figure(260, dark, barmode="group", bargap=0.25)
    for one in found:
        if one.track.role == "seed":
            continue
        style = line(one.track, dark)
        drawn.add_bar(
            x=list(one.info.labels),
            y=[None if value is None else 100 * value for value in one.info.values],
            name=one.track.label,
            marker={
                "color": style["color"],
                "opacity": 0.45 if one.track.role == "pin" else 1,
                "pattern": {"shape": "/" if one.track.role == "twin" else PATTERNS[one.track.place % len(PATTERNS)]},
            },
            hovertemplate="%{y:.1f} %",
        )
    drawn.update_yaxes(title="accuracy, %", range=[0, 100])
    return drawn


def describe(found: Sequence[PanelInfo[Classes]]) -> str:
    said = []
    for one in found:
        if one.track.role == "seed":
            continue
        pairs = [
            (value, label) for value, label in zip(one.info.values, one.info.labels, strict=True) if value is not None
        ]
        if pairs:
            worst, best = min(pairs), max(pairs)
            said.append(
                f"{one.track.label}: from {numbers.percent(worst[0])} for {worst[1]} "
                f"to {numbers.percent(best[0])} for {best[1]}"
            )
    return "Accuracy by class. " + "; ".join(said)


PANEL = Panel("classes", "Accuracy by class", (Measured,), collect, draw, describe)
