"""The spectrum chart: the singular values of a smoothing by frequency, and the part that the threshold removed.

Frequency 0 is what all clients share. The other frequencies are what differs between them.
"""

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


def when(smoothings: Sequence[Smoothed], at: int) -> PanelChoice:
    """The choice of the smoothing to show, by its round."""
    rounds = tuple(str(event.round) for event in smoothings)
    return PanelChoice(ROUND, smoothing_texts.WHEN, rounds, rounds[at], scrubbed=True)


def place(smoothings: Sequence[Smoothed], answer: str) -> int:
    """The index of the smoothing whose round the visitor chose."""
    return [str(event.round) for event in smoothings].index(answer)


def choices(info: Spectrum) -> tuple[PanelChoice, ...]:
    """The smoothing and the weights to show."""
    weight = PanelChoice(WEIGHT, smoothing_texts.WEIGHT, tuple(info.selected.spectra), info.weight)
    return when(info.smoothings, info.place), weight


def choose(info: Spectrum, answers: Mapping[str, str]) -> Spectrum:
    """The info with the visitor's choices applied."""
    return replace(info, place=place(info.smoothings, answers[ROUND]), weight=answers[WEIGHT])


# --- the chart ---------------------------------------------------------------------------------------------


def draw(infos: Sequence[PanelInfo[Spectrum]], dark: bool) -> go.Figure:
    """One curve for each frequency. All traces are built at once, because a large round has many frequencies."""
    info = infos[0].info
    side = "dark" if dark else "light"
    common = paper(380, dark)
    title = {"text": smoothing_texts.FREQUENCY, "side": "top", "font": {"size": 13}}
    layout = {
        **common,
        "hovermode": "closest",
        "margin": {**common["margin"], "t": 60},
        "legend": {**common["legend"], "title": title, "itemwidth": 30},
        "shapes": list(_shapes(info, side)),
        "annotations": [_note(info, side)],
        "xaxis": {**axis(dark), **_across(info)},
        "yaxis": {**axis(dark), **_up(info)},
    }
    return go.Figure(list(_lines(info, dark)), layout)


def _lines(info: Spectrum, dark: bool) -> Iterator[dict[str, Any]]:
    low = info.span[0]
    count = len(info.values)
    legend = {round(step * (count - 1) / (NAMED - 1)) for step in range(NAMED)}
    rank = ", rank %{x}" if info.rank_count > 1 else ""
    for frequency, values in enumerate(info.values):
        colour = theme.shade(1 - 0.55 * frequency / max(1, count - 1), dark)
        first = frequency == 0
        yield {
            "type": "scatter", "x": info.ranks if info.rank_count > 1 else [frequency],
            "y": [max(value, low) for value in values], "customdata": values,
            "name": f"ω{frequency}", "showlegend": frequency in legend and count > 1,
            "mode": "lines+markers" if len(info.ranks) < 20 else "lines",
            "line": {"color": colour, "width": 3 if first else 1.5},
            "marker": {"color": colour, "size": 9 if first else 6},
            "hovertemplate": f"ω{frequency}{rank}: %{{customdata:.3g}}<extra></extra>",
        }  # fmt: skip


def _up(info: Spectrum) -> dict[str, Any]:
    """The axis of the singular values. Values below its end are drawn on the end, and the title notes it."""
    low, high = (math.log10(end) for end in info.span)
    powers = range(math.floor(low), math.ceil(high) + 1, math.ceil((high - low) / 8))
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    below = any(value < info.span[0] for values in info.values for value in values)
    title = {"text": smoothing_texts.SUNK if below else smoothing_texts.VALUE, "font": {"size": 13}}
    labels = [f"{tick:g}" for tick in ticks]
    return {"title": title, "type": "log", "range": [low, high], "tickvals": ticks, "ticktext": labels}


def _across(info: Spectrum) -> dict[str, Any]:
    count = len(info.values)
    every: dict[str, Any] = {"dtick": 1} if max(info.rank_count, count) <= 12 else {}
    ends: dict[str, Any]
    if info.rank_count == 1:
        title = smoothing_texts.FREQUENCIES
        ends = {"range": [-0.5, count - 0.5], "tickprefix": "ω"}
    else:
        title = smoothing_texts.RANK
        ends = {"range": [0.5, info.rank_count + 0.5]}
    return {"title": {"text": title, "font": {"size": 13}}, "tickformat": "d", **ends, **every}


def _shapes(info: Spectrum, side: str) -> Iterator[dict[str, Any]]:
    """The threshold, and a shade over the values that it removes."""
    threshold = info.selected.threshold
    low, high = info.span
    whole = {"xref": "x domain", "x0": 0, "x1": 1}
    if threshold > low:
        fill = {"fillcolor": theme.FAINT[side], "opacity": 0.14, "line": {"width": 0}, "layer": "below"}
        yield {"type": "rect", **whole, "y0": low, "y1": min(threshold, high), **fill}
    if low < threshold < high:
        stroke = {"color": theme.INK[side], "width": 1.5, "dash": "dash"}
        yield {"type": "line", **whole, "y0": threshold, "y1": threshold, "line": stroke}


def _note(info: Spectrum, side: str) -> dict[str, Any]:
    """The threshold and the count that it removes, in a place without curves."""
    threshold = info.selected.threshold
    low, high = info.span
    on_chart = low < threshold < high
    above = threshold <= low or (on_chart and _free_above(info))
    end = "left" if on_chart and not above else "right"
    return {
        "text": smoothing_texts.threshold_note(info, on_chart), "showarrow": False, "borderpad": 1, "opacity": 0.85,
        "bgcolor": theme.PAPER[side] if above and on_chart else None,
        "x": 0 if end == "left" else 1, "xref": "paper", "xanchor": end, "align": end,
        "y": math.log10(min(max(threshold, low), high)), "yanchor": "bottom" if above else "top",
        "yshift": 2 if above else -2,
    }  # fmt: skip


def _free_above(info: Spectrum) -> bool:
    """Whether a note fits above the right half of the threshold. Below its left half the curves are still higher."""
    low, high = info.span
    first, *others = info.removed
    if first:
        return first > 0.4 * info.rank_count
    last_value = info.values[0][-1]
    return (
        bool(others) and min(others) == info.rank_count and last_value > info.selected.threshold * (high / low) ** 0.2
    )


def describe(infos: Sequence[PanelInfo[Spectrum]]) -> str:
    """The chart in words."""
    return smoothing_texts.spectrum_alt(infos[0].info)


PANEL = Panel(
    "spectrum", smoothing_texts.SPECTRUM, (Smoothed,), collect_spectrum, draw, describe,
    PanelChoices(choices, choose, smoothing_texts.spectrum_sentence),
)  # fmt: skip
