"""The spectrum chart shows every singular value and the threshold, and it counts what the threshold removed."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import pytest

from app import theme
from app.charts.base import PanelInfo, Track
from app.charts.spectrum import NAMED, PANEL
from app.texts import smoothing as smoothing_texts
from engine.events import Event, Measured, Smoothed, Started
from engine.results.smoothing import Spectrum
from engine.specs.run import RunSpec
from tests.app.charts.makers import run_events, smoothed

CHOICES = PANEL.choices
assert CHOICES
Values = tuple[tuple[float, ...], ...]


def collected(*events: Event, **answers: str) -> Spectrum:
    assert CHOICES
    info = PANEL.collect(events)
    assert info
    defaults = {choice.name: choice.chosen for choice in CHOICES.choices(info)}
    return CHOICES.choose(info, {**defaults, **answers})


def drawn(*smoothings: Smoothed, dark: bool = False, **answers: str) -> go.Figure:
    events = run_events(*smoothings)
    return PANEL.draw([PanelInfo(track(events), collected(*events, **answers))], dark)


def track(events: tuple[Event, ...]) -> Track:
    return Track("this run", "main", "fedceo", events)


def sentence(*smoothings: Smoothed, **answers: str) -> str:
    assert CHOICES
    return CHOICES.describe(collected(*run_events(*smoothings), **answers))


def only(values: Values, threshold: float = 1.0, ranks: tuple[int, ...] = ()) -> Smoothed:
    return smoothed(threshold=threshold, spectra={"w": values}, ranks={"w": ranks} if ranks else None)


def lines(figure: go.Figure) -> list[Any]:
    return list(figure.data)


# --- what is collected -------------------------------------------------------------------------------------


def test_the_default_is_the_last_smoothing_and_the_last_layer() -> None:
    info = collected(*run_events(smoothed(10), smoothed(20, threshold=3.0)))
    assert info.selected.round == 20 and info.weight == "head.weight"  # the layer that the heat maps compare
    other = collected(*run_events(smoothed(10), smoothed(20)), round="10", weight="hidden.weight")
    assert other.selected.round == 10 and other.rank_count == 4
    assert collected(*run_events(only(((2.0,), (1.0,))))).weight == "w"  # a bias, if there is no other weight


def test_a_visitor_chooses_the_smoothing_and_the_weight() -> None:
    assert CHOICES
    rounds, weights = CHOICES.choices(collected(*run_events(smoothed(10), smoothed(20))))
    assert (rounds.options, rounds.chosen, rounds.scrubbed) == (("10", "20"), "20", True)
    assert weights.options == ("hidden.weight", "head.weight", "head.bias") and not weights.scrubbed


@pytest.mark.parametrize("events", [(Measured(1, "accuracy", 0.5),), run_events(smoothed(spectra={}))])
def test_the_panel_is_hidden_until_the_server_has_smoothed(events: tuple[Event, ...]) -> None:
    assert PANEL.collected([track(events)]) == []


@pytest.mark.parametrize(
    ("values", "ranks", "removed", "exact"),
    [
        (((8.0, 4.0, 1.0, 0.5), (0.5, 0.4, 0.3, 0.2)), (), (2, 4), True),  # a value at the threshold is removed
        (((8.0, 4.0, 3.0, 2.0), (9.0, 8.0, 7.0, 6.0)), (), (0, 0), True),
        (((9.0, 0.0), (9.0, 0.0)), (1, 10), (1, 1), False),  # linear between two recorded ranks
        (((1.5, 0.5), (0.9, 0.1)), (1, 11), (5, 11), False),
    ],
)
def test_values_below_the_threshold_are_counted(
    values: Values, ranks: tuple[int, ...], removed: tuple[int, ...], exact: bool
) -> None:
    info = collected(*run_events(only(values, ranks=ranks)))
    assert info.removed == removed and info.exact is exact


# --- the chart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_a_line_for_each_frequency_and_one_for_the_threshold(dark: bool) -> None:
    figure = drawn(smoothed(), dark=dark, weight="hidden.weight")
    first, second = lines(figure)
    assert list(first.x) == [1, 2, 3, 4] and list(first.y) == [8, 4, 2, 0.5]
    assert list(second.y) == [2, 0.5, 0.25, 0.125] and (first.name, second.name) == ("ω0", "ω1")
    assert first.line.color == theme.shade(1, dark) != second.line.color and first.line.width > second.line.width
    assert figure.layout.yaxis.type == "log"
    shade, line = figure.layout.shapes
    assert (line.y0, line.y1) == (1, 1) and shade.y1 == 1
    low, high = (10**end for end in figure.layout.yaxis.range)
    assert low < 0.125 and high > 8 and shade.y0 == pytest.approx(low)
    note = figure.layout.annotations[0]
    assert note.y == 0 and note.text.endswith("1 of 4 at ω0, 3 at the others")  # a log axis places notes by exponents


@pytest.mark.parametrize("dark", [False, True])
def test_every_frequency_has_enough_contrast(dark: bool) -> None:
    figure = drawn(only(tuple((9.0, 1.0) for _ in range(11))), dark=dark)
    shades = [curve.line.color for curve in lines(figure)]
    assert len({*shades}) == 11
    paper = luminance(theme.PAPER["dark" if dark else "light"])
    contrasts = [contrast(paper, luminance(shade)) for shade in shades]
    assert contrasts == sorted(contrasts, reverse=True) and contrasts[-1] > 3  # the minimum of WCAG for a line


def contrast(first: float, second: float) -> float:
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_value_of_zero_is_at_the_bottom_and_the_axis_title_says_so() -> None:
    figure = drawn(only(((4.0, 0.0), (2.0, 1e-9))))
    low = 10 ** figure.layout.yaxis.range[0]
    first, second = lines(figure)
    assert first.y[1] == second.y[1] == pytest.approx(low) and first.customdata[1] == 0
    assert low > 1e-3  # rounding does not stretch the chart
    assert figure.layout.yaxis.title.text == smoothing_texts.SUNK
    assert drawn(smoothed()).layout.yaxis.title.text == smoothing_texts.VALUE


def test_the_axes_stay_the_same_for_every_smoothing() -> None:
    run = (smoothed(10, threshold=0.01), smoothed(20, threshold=50.0))
    early = drawn(*run, round="10")
    late = drawn(*run, round="20")
    assert early.layout.yaxis.range == late.layout.yaxis.range
    assert early.layout.shapes[1].y0 == 0.01 and late.layout.shapes[1].y0 == 50


@pytest.mark.parametrize(("threshold", "word", "shapes"), [(1e-9, "far below", 0), (1e300, "far above", 1)])
def test_a_threshold_far_outside_the_chart_is_noted_and_not_drawn(threshold: float, word: str, shapes: int) -> None:
    figure = drawn(smoothed(threshold=threshold))
    assert word in figure.layout.annotations[0].text
    assert len(figure.layout.shapes) == shapes  # the shade, if all values are removed
    assert figure.layout.yaxis.range[1] - figure.layout.yaxis.range[0] < 4


def test_a_spectrum_of_zeros_can_be_drawn() -> None:
    empty = only(((0.0, 0.0), (0.0, 0.0)))
    figure = drawn(empty)
    assert all(math.isfinite(value) and value > 0 for curve in lines(figure) for value in curve.y)
    assert "met nothing: w was empty before" in sentence(empty)


def test_a_bias_has_one_value_for_each_frequency() -> None:
    figure = drawn(smoothed(), weight="head.bias")
    assert [list(curve.x) for curve in lines(figure)] == [[0], [1]]
    assert figure.layout.xaxis.title.text == "frequency"


def test_the_legend_names_only_a_few_of_many_frequencies() -> None:
    figure = drawn(only(tuple((float(50 - frequency), 1.0) for frequency in range(40))))
    named = [curve.name for curve in lines(figure) if curve.showlegend]
    assert len(lines(figure)) == 40 and len(named) == NAMED and named[0] == "ω0" and named[-1] == "ω39"


# --- in words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("smoothing", "words"),
    [
        (only(((9.0, 5.0), (3.0, 0.5))), "none of 2 singular values of what all clients share (ω0), and 1 of 2 of each "
         "frequency that sets them apart. What is left was lowered by 1."),
        (only(((9.0, 5.0, 0.5), (3.0, 2.0, 0.5), (3.0, 0.2, 0.1))), "1 of 3 singular values of what all clients share "
         "(ω0), and 1 to 2 of 3 of each frequency"),
        (only(((9.0, 0.5), (0.9, 0.5))), "1 of 2 singular values of what all clients share (ω0), and all of what sets "
         "them apart: each got the same w. What is left was lowered by 1."),
        (only(((0.9, 0.5), (2.0, 0.5))), "all 2 singular values of what all clients share (ω0), and 1 of 2"),
        (only(((9.0, 5.0), (3.0, 2.0))), "nothing of w. Every singular value was lowered by 1."),
        (only(((0.9, 0.5), (0.3, 0.2))), "everything: nothing of w is left."),
        (only(((9.0, 0.5),)), "1 of 2 singular values of the clients' mean w. What is left was lowered by 1."),
        (only(((9.0, 0.1), (5.0, 0.1)), ranks=(1, 100)), "about 11 of 100 singular values of what all clients share "
         "(ω0), and about 19 of 100 of each"),
        (only(((9.0, 2.0), (5.0, 0.1)), ranks=(1, 100)), "none of 100 singular values of what all clients share (ω0), "
         "and about 19 of 100"),
        (only(((9.0,), (0.5,), (2.0,))), "nothing of what all clients share (ω0) in w, and 1 of the 2 frequencies that "
         "set them apart. What is left was lowered by 1."),
    ],
)  # fmt: skip
def test_the_sentence_reports_what_was_removed(smoothing: Smoothed, words: str) -> None:
    assert sentence(smoothing).startswith(f"The smoothing after round 10 removed {words}")


def test_the_description_has_the_largest_values() -> None:
    info = collected(*run_events(smoothed()), weight="hidden.weight")
    words = PANEL.describe([PanelInfo(track(()), info)])
    assert "Threshold 1; largest singular value of each frequency: ω0 8, ω1 2" in words
    assert sentence(smoothed()) not in words


def test_for_a_mean_over_orders_no_text_claims_what_is_left() -> None:
    assert CHOICES
    spec = RunSpec(method={"name": "fedceo", "client-order": "averaged"}).canonical()
    gone = only(((0.9, 0.5), (0.3, 0.2)))
    biases = only(((9.0,), (0.5,), (2.0,)))
    cases = ((gone, "2 of 2 singular values of w at ω0, and 2 of 2 of each other"), (biases, "1 of 3 freq"))
    for smoothing, below in cases:
        events = (Started("r", spec, {}), *run_events(smoothing)[1:])
        info = collected(*events)
        words = CHOICES.describe(info)
        assert "is the mean over several orders" in words and f"In the one shown, {below}" in words
        infos = [PanelInfo(track(events), info)]
        description = PANEL.describe(infos)
        note = PANEL.draw(infos, False).layout.annotations[0].text
        for claim in ("removed", "left", "got the same"):
            assert claim not in words and claim not in description and claim not in note
    alone = collected(Started("r", spec, {}), *run_events(smoothed(clients=()))[1:])
    assert "removed" in CHOICES.describe(alone)  # with only their sum, there is just one order
