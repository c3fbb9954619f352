"""The smoothing chart: accuracy just before and just after the server smooths the models of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.charts.base import Panel, PanelInfo, figure, line, without_seeds
from engine.events import BEFORE_SMOOTHING, Event, Measured


@dataclass(frozen=True)
class SmoothingAccuracy:
    """Accuracy around each smoothing of one run."""

    rounds: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean gain in accuracy, as a fraction."""
        return sum(self.after) / len(self.after) - sum(self.before) / len(self.before)


def collect(events: Sequence[Event]) -> SmoothingAccuracy | None:
    """The rounds that have an accuracy both before and after a smoothing."""
    after_by_round = dict(_accuracy(events, "global"))
    rounds = []
    before = []
    after = []
    for round, value in _accuracy(events, BEFORE_SMOOTHING):
        if round in after_by_round:
            rounds.append(round)
            before.append(value)
            after.append(after_by_round[round])
    if not rounds:
        return None
    return SmoothingAccuracy(tuple(rounds), tuple(before), tuple(after))


def _accuracy(events: Sequence[Event], who: str) -> list[tuple[int, float]]:
    """Round and accuracy of every finite measurement of `who`."""
    scores = []
    for event in events:
        if isinstance(event, Measured) and event.name == "accuracy" and event.who == who and event.value is not None:
            scores.append((event.round, event.value))
    return scores


def draw(infos: Sequence[PanelInfo[SmoothingAccuracy]], dark: bool) -> go.Figure:
    """A hollow mark before each smoothing, a full mark after it, and a line between them."""
    side = "dark" if dark else "light"
    chart = figure(260, dark)
    for entry in without_seeds(infos):
        info = entry.info
        colour = line(entry.track, dark)["color"]
        _add_connections(chart, info, colour)
        for name, values, fill in (("before", info.before, theme.PAPER[side]), ("after", info.after, colour)):
            chart.add_scatter(
                x=info.rounds,
                y=[100 * value for value in values],
                name=f"{entry.track.label}, {name}",
                mode="markers",
                marker={"color": fill, "size": 10, "line": {"color": colour, "width": 2}},
                hovertemplate="%{y:.1f} %",
            )
    chart.update_xaxes(title="round of the smoothing", tickformat="d")
    chart.update_yaxes(title="accuracy, %")
    return chart


def _add_connections(chart: go.Figure, info: SmoothingAccuracy, colour: str) -> None:
    """One line from each hollow mark to its full mark. Its direction shows whether the smoothing helped."""
    x: list[int | None] = []
    y: list[float | None] = []
    for round, before, after in zip(info.rounds, info.before, info.after, strict=True):
        x += [round, round, None]  # None ends a line
        y += [100 * before, 100 * after, None]
    chart.add_scatter(x=x, y=y, mode="lines", line={"color": colour, "width": 2}, showlegend=False, hoverinfo="skip")


def describe(infos: Sequence[PanelInfo[SmoothingAccuracy]]) -> str:
    """How often smoothing helped, and by how much on average, for each run."""
    sentences = [_gain(entry.track.label, entry.info) for entry in without_seeds(infos)]
    return "Accuracy before and after each smoothing. " + "; ".join(sentences)


def _gain(label: str, info: SmoothingAccuracy) -> str:
    count = len(info.rounds)
    better = sum(after > before for before, after in zip(info.before, info.after, strict=True))
    smoothings = "smoothing" if count == 1 else "smoothings"
    direction = "higher" if info.gain >= 0 else "lower"
    points = abs(100 * info.gain)
    return f"{label}: better after {better} of {count} {smoothings}, {points:.1f} points {direction} on average"


PANEL = Panel("smoothing", "What smoothing changed", (Measured,), collect, draw, describe)
