"""What a panel is: one chart that knows which events it listens to, and stays away until a run has said them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import plotly.graph_objects as go

from app import theme
from engine.events import Event

DASHES = ("solid", "dot", "dashdot", "longdash", "longdashdot")  # of the run itself, and of the pinned in turn
Info = TypeVar("Info")
Role = Literal["main", "seed", "twin", "pin"]


@dataclass(frozen=True)
class Track:
    """One run on a chart: what it is called there, why it is there, and what it said."""

    label: str
    role: Role
    method: str
    events: tuple[Event, ...]
    run: str = ""
    place: int = 0  # among the pinned, from 1


@dataclass(frozen=True)
class PanelInfo(Generic[Info]):
    """What one panel took from one track."""

    track: Track
    info: Info


@dataclass(frozen=True)
class PanelChoice:
    """What a visitor may choose on a panel: one of several, which go on being there while a run grows."""

    name: str
    label: str
    options: tuple[str, ...]
    chosen: str  # until somebody chooses
    scrubbed: bool = False  # along a slider; who stands at its end goes on with it


@dataclass(frozen=True)
class PanelChoices(Generic[Info]):
    """The choices of a panel that shows one run in more detail than fits on a chart, and what follows from them."""

    choices: Callable[[Info], Sequence[PanelChoice]]
    choose: Callable[[Info, Mapping[str, str]], Info]  # answers by name of the choice
    describe: Callable[[Info], str]  # what there is to see, in one sentence or two


@dataclass(frozen=True)
class Panel(Generic[Info]):
    """`collect` takes what it needs from the events of one run, `draw` makes one figure of several."""

    name: str
    title: str
    reads: tuple[type[Event], ...]
    collect: Callable[[Sequence[Event]], Info | None]  # None: this run has not said enough yet
    draw: Callable[[Sequence[PanelInfo[Info]], bool], go.Figure]
    describe: Callable[[Sequence[PanelInfo[Info]]], str]  # the chart in words
    choices: PanelChoices[Info] | None = None  # then it shows the run itself and no other

    def collected(self, tracks: Sequence[Track]) -> list[PanelInfo[Info]]:
        found = []
        for track in tracks:
            if self.choices and track.role != "main":
                continue
            if any(isinstance(event, self.reads) for event in track.events):
                info = self.collect(track.events)
                if info is not None:
                    found.append(PanelInfo(track, info))
        return found


def line(track: Track, dark: bool) -> dict[str, Any]:
    """How a run's line looks: its method's colour; the twin is broken and vermilion, pinned runs are thin."""
    side = "dark" if dark else "light"
    if track.role == "twin":
        return {"color": theme.LEAKING[side], "width": 2, "dash": "dash"}
    width = {"main": 3, "seed": 1}.get(track.role, 1.5)
    return {"color": theme.colour(track.method, dark), "width": width, "dash": DASHES[track.place % len(DASHES)]}


def axis(dark: bool) -> dict[str, Any]:
    """Ink and hairlines of one axis."""
    side = "dark" if dark else "light"
    lines = {"gridcolor": theme.LINE[side], "linecolor": theme.FAINT[side], "zeroline": False}
    return {**lines, "automargin": True, "title": {"font": {"size": 13}}}


def paper(height: int, dark: bool) -> dict[str, Any]:
    """What a figure looks like around its axes."""
    side = "dark" if dark else "light"
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.INK[side], "size": 13, "family": "Arial, Helvetica, sans-serif"},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.PAPER[side], "font": {"color": theme.INK[side]}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }


def figure(height: int, dark: bool, **layout: Any) -> go.Figure:
    """Paper, ink and hairlines."""
    return go.Figure(layout={**paper(height, dark), "xaxis": axis(dark), "yaxis": axis(dark), **layout})


def thinned(many: int, most: int = 500) -> list[int]:
    """Places of at most so many points, the first and the last among them."""
    if many <= most:
        return list(range(many))
    return sorted({round(place * (many - 1) / (most - 1)) for place in range(most)})
