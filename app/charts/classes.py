"""The class chart: accuracy of each class after the last round. Protection may cost some classes more than others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.charts.base import Panel, PanelInfo, figure, line, without_seeds
from app.texts import numbers
from engine.events import Event, Measured, Started

OF_ROLE = {"baseline": "/", "other": "\\"}  # `other` is side B
PATTERNS = ("", ".", "x", "|", "-")  # the main run, then the pinned runs in order


@dataclass(frozen=True)
class ClassAccuracy:
    """Accuracy by class after the last round."""

    labels: tuple[str, ...]
    values: tuple[float | None, ...]


def collect(events: Sequence[Event]) -> ClassAccuracy | None:
    """The last accuracy of each class, under the name of the class where the run recorded names."""
    accuracy: dict[str, float | None] = {}
    for event in events:
        if isinstance(event, Measured) and event.name == "accuracy" and event.who.startswith("class "):
            accuracy[event.who.removeprefix("class ")] = event.value
    if not accuracy:
        return None
    started = next((event for event in events if isinstance(event, Started)), None)
    names = started.facts.get("classes", ()) if started else ()
    labels = [names[int(label)] if int(label) < len(names) else f"class {label}" for label in accuracy]
    return ClassAccuracy(tuple(labels), tuple(accuracy.values()))


def draw(infos: Sequence[PanelInfo[ClassAccuracy]], dark: bool) -> go.Figure:
    """Grouped bars, one group for each class and one bar for each run."""
    chart = figure(260, dark, barmode="group", bargap=0.25)
    for entry in without_seeds(infos):
        track = entry.track
        pattern = OF_ROLE.get(track.role, PATTERNS[track.place % len(PATTERNS)])
        chart.add_bar(
            x=list(entry.info.labels),
            y=[None if value is None else 100 * value for value in entry.info.values],
            name=track.label,
            marker={
                "color": line(track, dark)["color"],
                "opacity": 0.45 if track.role == "pin" else 1,
                "pattern": {"shape": pattern},
            },
            hovertemplate="%{y:.1f} %",
        )
    chart.update_yaxes(title="accuracy, %", range=[0, 100])
    return chart


def describe(infos: Sequence[PanelInfo[ClassAccuracy]]) -> str:
    """The worst and the best class of each run."""
    sentences = []
    for entry in without_seeds(infos):
        pairs = zip(entry.info.values, entry.info.labels, strict=True)
        measured = [(value, label) for value, label in pairs if value is not None]
        if not measured:
            continue
        worst, worst_label = min(measured)
        best, best_label = max(measured)
        sentences.append(
            f"{entry.track.label}: from {numbers.percent(worst)} for {worst_label} "
            f"to {numbers.percent(best)} for {best_label}"
        )
    return "Accuracy by class. " + "; ".join(sentences)


PANEL = Panel("classes", "Accuracy by class", (Measured,), collect, draw, describe)
