"""Spectrum: what the clients of a smoothing share and what sets them apart, and which of it the threshold removed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from app import theme
from app.charts.base import Panel, PanelChoice, PanelChoices, PanelInfo, axis, paper
from app.texts import smoothing as smoothing_texts
from engine.events import Smoothed
from engine.results.smoothing import Spectrum, collect_spectrum

NAMED = 8  # frequencies in the legend at most
ROUND, WEIGHT = "round", "weight"


def when(told: Sequence[Smoothed], at: int) -> PanelChoice:
    """Which smoothing is looked at."""
    rounds = tuple(str(one.round) for one in told)
    return PanelChoice(ROUND, smoothing_texts.WHEN, rounds, rounds[at], scrubbed=True)


def place(told: Sequence[Smoothed], answer: str) -> int:
    return [str(one.round) for one in told].index(answer)


def choices(info: Spectrum) -> tuple[PanelChoice, ...]:
    return when(info.told, info.at), PanelChoice(WEIGHT, smoothing_texts.WEIGHT, tuple(info.now.spectra), info.weight)


def choose(info: Spectrum, answers: Mapping[str, str]) -> Spectrum:
    return replace(info, at=place(info.told, answers[ROUND]), weight=answers[WEIGHT])


# --- the chart ---------------------------------------------------------------------------------------------


def draw(found: Sequence[PanelInfo[Spectrum]], dark: bool) -> go.Figure:
    """Built as one table: a large round has many frequencies."""
    info, side = found[0].info, "dark" if dark else "light"
    around = paper(380, dark)
    title = {"text": smoothing_texts.FREQUENCY, "side": "top", "font": {"size": 13}}
    layout = {
        **around,
        "hovermode": "closest",
        "margin": {**around["margin"], "t": 60},
        "legend": {**around["legend"], "title": title, "itemwidth": 30},
        "shapes": list(_shapes(info, side)),
        "annotations": [_note(info, side)],
        "xaxis": {**axis(dark), **_across(info)},
        "yaxis": {**axis(dark), **_up(info)},
    }
    return go.Figure(list(_lines(info, dark)), layout)


def _lines(info: Spectrum, dark: bool) -> Iterator[dict[str, Any]]:
    low, of = info.span[0], len(info.values)
    legend = {round(step * (of - 1) / (NAMED - 1)) for step in range(NAMED)}
    where = ", rank %{x}" if info.many > 1 else ""
    for frequency, values in enumerate(info.values):
        colour, first = theme.shade(1 - 0.55 * frequency / max(1, of - 1), dark), frequency == 0
        yield {
            "type": "scatter", "x": info.ranks if info.many > 1 else [frequency],
            "y": [max(value, low) for value in values], "customdata": values,
            "name": f"ω{frequency}", "showlegend": frequency in legend and of > 1,
            "mode": "lines+markers" if len(info.ranks) < 20 else "lines",
            "line": {"color": colour, "width": 3 if first else 1.5},
            "marker": {"color": colour, "size": 9 if first else 6},
            "hovertemplate": f"ω{frequency}{where}: %{{customdata:.3g}}<extra></extra>",
        }  # fmt: skip


def _up(info: Spectrum) -> dict[str, Any]:
    low, high = (math.log10(end) for end in info.span)
    powers = range(math.floor(low), math.ceil(high) + 1, math.ceil((high - low) / 8))
    ticks = [step * 10.0**power for power in powers for step in ((1, 2, 5) if high - low < 2 else (1,))]
    sunk = any(value < info.span[0] for values in info.values for value in values)
    title = {"text": smoothing_texts.SUNK if sunk else smoothing_texts.VALUE, "font": {"size": 13}}
    named = {"tickvals": ticks, "ticktext": [f"{one:g}" for one in ticks]}
    return {"title": title, "type": "log", "range": [low, high], **named}


def _across(info: Spectrum) -> dict[str, Any]:
    of = len(info.values)
    every = {"dtick": 1} if max(info.many, of) <= 12 else {}
    if info.many == 1:
        title, ends = smoothing_texts.FREQUENCIES, {"range": [-0.5, of - 0.5], "tickprefix": "ω"}
    else:
        title, ends = smoothing_texts.RANK, {"range": [0.5, info.many + 0.5]}
    return {"title": {"text": title, "font": {"size": 13}}, "tickformat": "d", **ends, **every}


def _shapes(info: Spectrum, side: str) -> Iterator[dict[str, Any]]:
    """The threshold, and a shade over all that it removes."""
    threshold, (low, high) = info.now.threshold, info.span
    whole = {"xref": "x domain", "x0": 0, "x1": 1}
    if threshold > low:
        fill = {"fillcolor": theme.FAINT[side], "opacity": 0.14, "line": {"width": 0}, "layer": "below"}
        yield {"type": "rect", **whole, "y0": low, "y1": min(threshold, high), **fill}
    if low < threshold < high:
        stroke = {"color": theme.INK[side], "width": 1.5, "dash": "dash"}
        yield {"type": "line", **whole, "y0": threshold, "y1": threshold, "line": stroke}


def _note(info: Spectrum, side: str) -> dict[str, Any]:
    """What the threshold is and what it removes, where no curve runs."""
    threshold, (low, high) = info.now.threshold, info.span
    there = low < threshold < high
    above = threshold <= low or (there and _free_above(info))
    end = "left" if there and not above else "right"
    return {
        "text": smoothing_texts.cut(info, there), "showarrow": False, "borderpad": 1, "opacity": 0.85,
        "bgcolor": theme.PAPER[side] if above and there else None,
        "x": 0 if end == "left" else 1, "xref": "paper", "xanchor": end, "align": end,
        "y": math.log10(min(max(threshold, low), high)), "yanchor": "bottom" if above else "top",
        "yshift": 2 if above else -2,
    }  # fmt: skip


def _free_above(info: Spectrum) -> bool:
    """Whether words fit over the right half of the line; below its left half the curves are still above it."""
    low, high = info.span
    (first, *rest), tail = info.removed, info.values[0][-1]
    if first:
        return first > 0.4 * info.many
    return bool(rest) and min(rest) == info.many and tail > info.now.threshold * (high / low) ** 0.2


def describe(found: Sequence[PanelInfo[Spectrum]]) -> str:
    return smoothing_texts.spectrum_alt(found[0].info)


PANEL = Panel(
    "spectrum", smoothing_texts.SPECTRUM, (Smoothed,), collect_spectrum, draw, describe,
    PanelChoices(choices, choose, smoothing_texts.removed),
)  # fmt: skip
