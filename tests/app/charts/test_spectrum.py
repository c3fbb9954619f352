"""The spectrum: every singular value where it was, the threshold among them, and what it removed counted truly."""

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
from tests.app.charts.makers import smoothed, told

CHOICES = PANEL.choices
assert CHOICES
Values = tuple[tuple[float, ...], ...]


def found(*events: Event, **answers: str) -> Spectrum:
    assert CHOICES
    info = PANEL.collect(events)
    assert info
    return CHOICES.choose(info, {**{one.name: one.chosen for one in CHOICES.choices(info)}, **answers})


def drawn(*smoothings: Smoothed, dark: bool = False, **answers: str) -> go.Figure:
    events = told(*smoothings)
    return PANEL.draw([PanelInfo(Track("this run", "main", "fedceo", events), found(*events, **answers))], dark)


def said(*smoothings: Smoothed, **answers: str) -> str:
    assert CHOICES
    return CHOICES.describe(found(*told(*smoothings), **answers))


def only(values: Values, threshold: float = 1.0, ranks: tuple[int, ...] = ()) -> Smoothed:
    return smoothed(threshold=threshold, spectra={"w": values}, ranks={"w": ranks} if ranks else None)


def lines(figure: go.Figure) -> list[Any]:
    return list(figure.data)


# --- what is found -----------------------------------------------------------------------------------------


def test_it_begins_with_the_last_smoothing_and_the_last_layer() -> None:
    info = found(*told(smoothed(10), smoothed(20, threshold=3.0)))
    assert info.now.round == 20 and info.weight == "head.weight"  # whose clients stand in the heat maps
    other = found(*told(smoothed(10), smoothed(20)), round="10", weight="hidden.weight")
    assert other.now.round == 10 and other.many == 4
    assert found(*told(only(((2.0,), (1.0,))))).weight == "w"  # a bias, where there is nothing else


def test_what_may_be_chosen() -> None:
    assert CHOICES
    rounds, weights = CHOICES.choices(found(*told(smoothed(10), smoothed(20))))
    assert (rounds.options, rounds.chosen, rounds.scrubbed) == (("10", "20"), "20", True)
    assert weights.options == ("hidden.weight", "head.weight", "head.bias") and not weights.scrubbed


@pytest.mark.parametrize("events", [(Measured(1, "accuracy", 0.5),), told(smoothed(spectra={}))])
def test_it_stays_away_until_a_server_has_smoothed(events: tuple[Event, ...]) -> None:
    assert PANEL.collected([Track("this run", "main", "fedceo", events)]) == []


@pytest.mark.parametrize(
    ("values", "ranks", "removed", "exact"),
    [
        (((8.0, 4.0, 1.0, 0.5), (0.5, 0.4, 0.3, 0.2)), (), (2, 4), True),  # at the threshold is not above it
        (((8.0, 4.0, 3.0, 2.0), (9.0, 8.0, 7.0, 6.0)), (), (0, 0), True),
        (((9.0, 0.0), (9.0, 0.0)), (1, 10), (1, 1), False),  # a straight line between two known ranks
        (((1.5, 0.5), (0.9, 0.1)), (1, 11), (5, 11), False),
    ],
)
def test_what_lies_below_is_counted(
    values: Values, ranks: tuple[int, ...], removed: tuple[int, ...], exact: bool
) -> None:
    info = found(*told(only(values, ranks=ranks)))
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
    assert note.y == 0 and note.text.endswith("1 of 4 at ω0, 3 at the others")  # log axes place words by powers


@pytest.mark.parametrize("dark", [False, True])
def test_every_frequency_stands_out_from_the_paper(dark: bool) -> None:
    figure = drawn(only(tuple((9.0, 1.0) for _ in range(11))), dark=dark)
    shades = [one.line.color for one in lines(figure)]
    assert len({*shades}) == 11
    paper = light(theme.PAPER["dark" if dark else "light"])
    contrasts = [(max(paper, light(one)) + 0.05) / (min(paper, light(one)) + 0.05) for one in shades]
    assert contrasts == sorted(contrasts, reverse=True) and contrasts[-1] > 3  # what WCAG asks of a line


def light(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_is_zero_stands_at_the_bottom_and_is_said() -> None:
    figure = drawn(only(((4.0, 0.0), (2.0, 1e-9))))
    low = 10 ** figure.layout.yaxis.range[0]
    first, second = lines(figure)
    assert first.y[1] == second.y[1] == pytest.approx(low) and first.customdata[1] == 0
    assert low > 1e-3  # rounding does not stretch the chart
    assert figure.layout.yaxis.title.text == smoothing_texts.SUNK
    assert drawn(smoothed()).layout.yaxis.title.text == smoothing_texts.VALUE


def test_the_chart_stands_still_while_it_is_scrubbed() -> None:
    run = (smoothed(10, threshold=0.01), smoothed(20, threshold=50.0))
    early, late = drawn(*run, round="10"), drawn(*run, round="20")
    assert early.layout.yaxis.range == late.layout.yaxis.range
    assert early.layout.shapes[1].y0 == 0.01 and late.layout.shapes[1].y0 == 50


@pytest.mark.parametrize(("threshold", "word", "shapes"), [(1e-9, "far below", 0), (1e300, "far above", 1)])
def test_a_threshold_beyond_everything_is_told_and_not_drawn(threshold: float, word: str, shapes: int) -> None:
    figure = drawn(smoothed(threshold=threshold))
    assert word in figure.layout.annotations[0].text
    assert len(figure.layout.shapes) == shapes  # the shade, where all of it is removed
    assert figure.layout.yaxis.range[1] - figure.layout.yaxis.range[0] < 4


def test_nothing_but_zeros_can_be_drawn() -> None:
    empty = only(((0.0, 0.0), (0.0, 0.0)))
    figure = drawn(empty)
    assert all(math.isfinite(value) and value > 0 for one in lines(figure) for value in one.y)
    assert "met nothing: w was empty before" in said(empty)


def test_a_bias_has_one_value_a_frequency() -> None:
    figure = drawn(smoothed(), weight="head.bias")
    assert [list(one.x) for one in lines(figure)] == [[0], [1]]
    assert figure.layout.xaxis.title.text == "frequency"


def test_of_many_frequencies_the_legend_names_a_few() -> None:
    figure = drawn(only(tuple((float(50 - at), 1.0) for at in range(40))))
    named = [one.name for one in lines(figure) if one.showlegend]
    assert len(lines(figure)) == 40 and len(named) == NAMED and named[0] == "ω0" and named[-1] == "ω39"


# --- in words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "words"),
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
def test_the_sentence_says_what_was_removed(one: Smoothed, words: str) -> None:
    assert said(one).startswith(f"The smoothing after round 10 removed {words}")


def test_those_who_cannot_see_it_hear_the_heights() -> None:
    info = found(*told(smoothed()), weight="hidden.weight")
    words = PANEL.describe([PanelInfo(Track("this run", "main", "fedceo", ()), info)])
    assert (
        "Threshold 1; largest singular value of each frequency: ω0 8, ω1 2" in words and said(smoothed()) not in words
    )


def test_of_a_mean_over_orders_nothing_is_claimed_of_what_is_left() -> None:
    assert CHOICES
    spec = RunSpec(method={"name": "fedceo", "client-order": "averaged"}).canonical()
    gone, biases = only(((0.9, 0.5), (0.3, 0.2))), only(((9.0,), (0.5,), (2.0,)))
    for one, below in ((gone, "2 of 2 singular values of w at ω0, and 2 of 2 of each other"), (biases, "1 of 3 freq")):
        events = (Started("r", spec, {}), *told(one)[1:])
        info = found(*events)
        words = CHOICES.describe(info)
        assert "is the mean over several orders" in words and f"In the one shown, {below}" in words
        heard = PANEL.describe([PanelInfo(Track("this run", "main", "fedceo", events), info)])
        seen = (
            PANEL.draw([PanelInfo(Track("this run", "main", "fedceo", events), info)], False).layout.annotations[0].text
        )
        for claim in ("removed", "left", "got the same"):
            assert claim not in words and claim not in heard and claim not in seen
    alone = found(Started("r", spec, {}), *told(smoothed(clients=()))[1:])
    assert "removed" in CHOICES.describe(alone)  # of their sum alone there is but one order
