"""What smoothing changed: accuracy just before and just after the server smoothed the models of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app import theme
from app.charts.base import Panel, PanelInfo, figure, line
from engine.events import BEFORE_SMOOTHING, Event, Measured


@dataclass(frozen=True)
class Smoothings:
    """Accuracy around each smoothing."""

    rounds: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def gain(self) -> float:
        """On average, in shares of one."""
        return sum(self.after) / len(self.after) - sum(self.before) / len(self.before)


def collect(events: Sequence[Event]) -> Smoothings | None:
    scores = [one for one in events if isinstance(one, Measured) and one.name == "accuracy" and one.value is not None]
    after = {one.round: one.value for one in scores if one.who == "global"}
    pairs = [
        (one.round, one.value, after[one.round]) for one in scores if one.who == BEFORE_SMOOTHING and one.round in after
    ]
    if not pairs:
        return None
    rounds, ends, starts = zip(*[(at, now, then) for at, then, now in pairs], strict=True)
    return Smoothings(rounds, starts, ends)


def draw(found: Sequence[PanelInfo[Smoothings]], dark: bool) -> go.Figure:
    drawn, side = figure(260, dark), "dark" if dark else "light"
    for one in found:
        if one.track.role == "seed":
            continue
        info, colour = one.info, line(one.track, dark)["color"]
        # one stroke from each hollow mark to its full one: its direction says whether smoothing helped
        drawn.add_scatter(
            x=[at for round in info.rounds for at in (round, round, None)],
            y=[at for pair in zip(info.before, info.after, strict=True) for at in (*(100 * end for end in pair), None)],
            mode="lines",
            line={"color": colour, "width": 2},
            showlegend=False,
            hoverinfo="skip",
        )
        for name, values, fill in (("before", info.before, theme.PAPER[side]), ("after", info.after, colour)):
            drawn.add_scatter(
                x=info.rounds,
                y=[100 * value for value in values],
                name=f"{one.track.label}, {name}",
                mode="markers",
                marker={"color": fill, "size": 10, "line": {"color": colour, "width": 2}},
                hovertemplate="%{y:.1f} %",
            )
    drawn.update_xaxes(title="round of the smoothing", tickformat="d")
    drawn.update_yaxes(title="accuracy, %")
    return drawn


def describe(found: Sequence[PanelInfo[Smoothings]]) -> str:
    said = []
    for one in found:
        if one.track.role == "seed":
            continue
        info, many = one.info, len(one.info.rounds)
        better = sum(behind > before for before, behind in zip(info.before, info.after, strict=True))
        said.append(
            f"{one.track.label}: better after {better} of {many} smoothing{'' if many == 1 else 's'}, "
            f"{abs(100 * info.gain):.1f} points {'higher' if info.gain >= 0 else 'lower'} on average"
        )
    return "Accuracy before and after each smoothing. " + "; ".join(said)


PANEL = Panel("smoothing", "What smoothing changed", (Measured,), collect, draw, describe)
