"""The common parts of every chart: tracks, panels, choices, line styles and axes.

A panel is one chart. It names the events that it reads, and it is hidden until a run has recorded some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import plotly.graph_objects as go

from app import theme
from engine.events import Event

FONT = '"Source Sans", Arial, sans-serif'  # that of the page
DASHES = ("solid", "dot", "dashdot", "longdash", "longdashdot")  # the main run, then the pinned runs in order
Info = TypeVar("Info")
Role = Literal["main", "seed", "other", "other seed", "baseline", "pin"]  # `other`: side B, next to the main run


@dataclass(frozen=True)
class Track:
    """One run on a chart: its label, its role and its events."""

    label: str
    role: Role
    method: str
    events: tuple[Event, ...]
    run: str = ""
    place: int = 0  # position among the pinned runs, from 1


@dataclass(frozen=True)
class PanelInfo(Generic[Info]):
    """What one panel collected from one track."""

    track: Track
    info: Info


@dataclass(frozen=True)
class PanelChoice:
    """A choice that a panel offers to the visitor. An option never goes away while the run continues."""

    name: str
    label: str
    options: tuple[str, ...]
    chosen: str  # the default
    scrubbed: bool = False  # shown as a slider; at its end it moves along to each new option


@dataclass(frozen=True)
class PanelChoices(Generic[Info]):
    """The choices of a panel that shows details of one run, and the functions that apply and describe them."""

    choices: Callable[[Info], Sequence[PanelChoice]]
    choose: Callable[[Info, Mapping[str, str]], Info]  # answers by the name of the choice
    describe: Callable[[Info], str]  # the chosen view in one or two sentences


@dataclass(frozen=True)
class Panel(Generic[Info]):
    """One chart: `collect` folds the events of one run, `draw` makes one figure from several runs."""

    name: str
    title: str
    reads: tuple[type[Event], ...]
    collect: Callable[[Sequence[Event]], Info | None]  # None: the run has too few events yet
    draw: Callable[[Sequence[PanelInfo[Info]], bool], go.Figure]
    describe: Callable[[Sequence[PanelInfo[Info]]], str]  # the chart in words
    choices: PanelChoices[Info] | None = None  # with choices, the panel shows the main run only

    def collected(self, tracks: Sequence[Track]) -> list[PanelInfo[Info]]:
        """The tracks that this panel can show, each with its collected info."""
        infos = []
        for track in tracks:
            if self.choices and track.role != "main":
                continue
            if any(isinstance(event, self.reads) for event in track.events):
                info = self.collect(track.events)
                if info is not None:
                    infos.append(PanelInfo(track, info))
        return infos


def without_seeds(infos: Sequence[PanelInfo[Info]]) -> list[PanelInfo[Info]]:
    """All tracks except further seeds, which only widen the band of their run."""
    return [entry for entry in infos if entry.track.role not in ("seed", "other seed")]


def line(track: Track, dark: bool) -> dict[str, Any]:
    """The line style of a run: its method's colour, dashed for B, grey and dotted for a baseline, thin for pins."""
    if track.role == "baseline":
        return {"color": theme.baseline(dark), "width": 2, "dash": "dot"}
    if track.role in ("other", "other seed"):
        return {"color": theme.colour(track.method, dark), "width": 3, "dash": "dash"}
    width = {"main": 3, "seed": 1}.get(track.role, 1.5)
    return {"color": theme.colour(track.method, dark), "width": width, "dash": DASHES[track.place % len(DASHES)]}


def axis(dark: bool) -> dict[str, Any]:
    """The grid and line colours of one axis."""
    side = "dark" if dark else "light"
    lines = {"gridcolor": theme.LINE[side], "linecolor": theme.FAINT[side], "zeroline": False}
    return {**lines, "automargin": True, "title": {"font": {"size": 13}}}


def paper(height: int, dark: bool) -> dict[str, Any]:
    """The layout around the axes: size, margins, font, pointer labels and legend."""
    side = "dark" if dark else "light"
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": theme.INK[side], "size": 13, "family": FONT},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.PAPER[side], "font": {"color": theme.INK[side]}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }


def figure(height: int, dark: bool, **layout: Any) -> go.Figure:
    """An empty figure with the common layout and a pair of axes."""
    return go.Figure(layout={**paper(height, dark), "xaxis": axis(dark), "yaxis": axis(dark), **layout})


def thinned(count: int, most: int = 500) -> list[int]:
    """At most `most` evenly spaced indices into a list of `count` items. The first and the last are always kept."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})
