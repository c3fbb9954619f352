"""The smoothness chart: two heat maps on one scale, the accuracy on the chosen class, and matching sentences."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import pytest

from app import theme
from app.charts.base import PanelInfo, Track
from app.charts.smoothness import HEAD_PX, PANEL, SIGN, SPREAD
from engine.events import ByClass, Event, Measured, Smoothed
from engine.results.smoothing import Smoothness
from tests.app.charts.makers import ACCURACY, CLIENTS, NAMES, ROUGH, SPECTRA, by_class, run_events, smoothed

NO_CLIENT: tuple[ByClass, ByClass] = ((), ())
CHOICES = PANEL.choices
assert CHOICES


def collected(*events: Event, **answers: str) -> Smoothness:
    assert CHOICES
    info = PANEL.collect(events)
    assert info
    defaults = {choice.name: choice.chosen for choice in CHOICES.choices(info)}
    return CHOICES.choose(info, {**defaults, **answers})


def drawn(*events: Event, dark: bool = False, **answers: str) -> go.Figure:
    return PANEL.draw([PanelInfo(Track("this run", "main", "fedceo", events), collected(*events, **answers))], dark)


def sentence(*smoothings: Smoothed, cohort: int = 3, **answers: str) -> str:
    assert CHOICES
    return CHOICES.describe(collected(*run_events(*smoothings, cohort=cohort), **answers))


def maps(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.type == "heatmap"]


def bars(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.type == "bar"]


# --- what is collected -------------------------------------------------------------------------------------


def test_the_default_is_the_last_smoothing_and_the_class_that_changed_most() -> None:
    info = collected(*run_events(smoothed(10), smoothed(20, threshold=2.0)))
    assert info.selected.round == 20 and info.names[info.label] == "bag"
    assert info.scores == ((0.75, 0.25, 0.75), (0.75, 0.75, 0.5))
    assert collected(*run_events(smoothed(10), smoothed(20)), round="10").selected.round == 10
    assert collected(*run_events(smoothed()), label="shirt").label == 0


@pytest.mark.parametrize(
    "events",
    [
        (Measured(1, "accuracy", 0.5),),
        run_events(smoothed(clients=(), rough=NO_CLIENT, accuracy=NO_CLIENT)),  # the server had only the sum
        run_events(
            smoothed(clients=(3,), rough=(((0.0,),) * 2,) * 2, accuracy=(((0.5,),) * 2,) * 2)
        ),  # a single client
        run_events(smoothed(rough=NO_CLIENT)),  # a last layer without a row for each class
    ],
    ids=["no smoothing", "sum", "one client", "no rows"],
)
def test_the_panel_is_hidden_if_there_is_nothing_to_compare(events: tuple[Event, ...]) -> None:
    assert PANEL.collected([Track("this run", "main", "fedceo", events)]) == []


def test_the_panel_shows_the_main_run_only() -> None:
    tracks = [Track("p", role, "fedceo", run_events(smoothed())) for role in ("pin", "seed", "baseline")]
    assert PANEL.collected(tracks) == []
    assert len(PANEL.collected([Track("this run", "main", "fedceo", run_events(smoothed())), *tracks])) == 1


def test_classes_without_names_are_numbered() -> None:
    assert collected(*run_events(smoothed(), names=["only one"])).names == ("class 0", "class 1")


@pytest.mark.parametrize(
    ("scores", "places"),
    [
        ((0.75, 0.25, 0.75), {1}),
        ((0.75, 0.5, 0.75), set()),  # two thirds of the median is not much lower
        ((0.09, 0.0, 0.09), set()),  # less than ten points
        ((0.75, None, 0.25), set()),  # two clients have no majority to compare with
        ((0.9, 0.9, 0.0, 0.9, 0.1), {2, 4}),
    ],
)
def test_clients_far_below_the_median_are_marked(scores: tuple[float | None, ...], places: set[int]) -> None:
    clients = range(len(scores))
    smoothing = smoothed(clients=clients, rough=((scores,),) * 2, accuracy=((scores,),) * 2)
    assert collected(*run_events(smoothing, names=["bag"])).low == (frozenset(places), frozenset(places))


# --- the chart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_both_maps_hold_the_roughness_on_one_scale(dark: bool) -> None:
    figure = drawn(*run_events(smoothed()), dark=dark)
    before, after = maps(figure)
    assert [list(row) for row in before.z] == [[4, 8, 4], [4, 4, 0]]
    assert [list(row) for row in after.z] == [[1, 2, 1], [1, 1, 0]]
    assert list(before.x) == ["3", "7", "40"] and list(before.y) == ["shirt", "bag"]
    assert before.coloraxis == after.coloraxis == "coloraxis"
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 8)
    scale = [colour for _, colour in figure.layout.coloraxis.colorscale]
    assert scale == list(theme.SHADES["dark" if dark else "light"])
    meaning = {*theme.PRIVATE.values(), *theme.LEAKING.values()}
    assert not meaning & {shade.upper() for shade in scale}
    labels = figure.layout.coloraxis.colorbar.ticktext
    assert "alike" in labels[0] and "apart" in labels[-1]


def test_a_wide_range_has_a_logarithmic_scale_and_zero_takes_its_low_end() -> None:
    far = 8 / (SPREAD + 10)
    figure = drawn(*run_events(smoothed(rough=(ROUGH[0], ((far, far, far), (far, 1.0, 0.0))))))
    _, after = maps(figure)
    assert after.z[0][0] == after.z[1][2] == pytest.approx(math.log10(far)) == figure.layout.coloraxis.cmin
    assert after.customdata[1][2] == 0  # the pointer shows the measured value
    assert figure.layout.coloraxis.colorbar.ticktext[0] == f"{far:.2g} alike"


def test_nearly_equal_distances_have_nearly_equal_colours() -> None:
    figure = drawn(*run_events(smoothed(rough=(((1.0,) * 3,) * 2, ((0.99,) * 3,) * 2))))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0.8, 1)


def test_bars_are_the_accuracy_of_the_chosen_class() -> None:
    before, after = bars(drawn(*run_events(smoothed())))
    assert list(before.y) == [75, 25, 75] and list(after.y) == [75, 75, 50]
    assert list(before.text) == ["", SIGN, ""] and list(after.text) == ["", "", ""]
    assert before.marker.color == theme.PAPER["light"] and after.marker.color == theme.colour("fedceo")
    shirt_before, shirt_after = bars(drawn(*run_events(smoothed()), label="shirt"))
    assert list(shirt_before.y) == [50, 50, 50] and {*shirt_before.text, *shirt_after.text} == {""}


def test_the_sign_is_explained_if_it_is_shown() -> None:
    explained = []
    for name in NAMES:
        texts = [note.text for note in drawn(*run_events(smoothed()), label=name).layout.annotations]
        explained.append(any("much lower" in text for text in texts))
        assert "before smoothing" in texts and "after smoothing" in texts
    assert explained == [False, True]


@pytest.mark.parametrize("dark", [False, True])
def test_the_row_of_the_chosen_class_is_framed_in_both_maps(dark: bool) -> None:
    figure = drawn(*run_events(smoothed()), dark=dark)
    side = "dark" if dark else "light"
    assert {(frame.xref, frame.y0, frame.y1) for frame in figure.layout.shapes} == {("x", 0.5, 1.5), ("x2", 0.5, 1.5)}
    assert {frame.line.color for frame in figure.layout.shapes} == {theme.INK[side], theme.PAPER[side]}
    assert list(figure.layout.yaxis.ticktext) == ["shirt", "<b>bag</b>"]


def test_a_class_without_test_data_has_no_bars() -> None:
    scores = ((0.5, 0.5, 0.5), (None, None, None))
    smoothing = smoothed(accuracy=(scores, scores))
    assert list(bars(drawn(*run_events(smoothing), label="bag"))[0].y) == [None, None, None]
    assert "The test data hold no “bag”." in sentence(smoothing, label="bag")


@pytest.mark.parametrize(("classes", "clients"), [(2, 5), (47, 20), (10, 100)])
def test_every_class_is_named_and_as_many_clients_as_fit(classes: int, clients: int) -> None:
    rough = by_class(classes, clients, 1.0)
    scores = by_class(classes, clients, 0.1)
    smoothing = smoothed(clients=range(clients), rough=(rough, rough), accuracy=(scores, scores))
    figure = drawn(*run_events(smoothing, names=[f"c{label}" for label in range(classes)]))
    assert len(figure.layout.yaxis.ticktext) == classes
    assert 1 < len(figure.layout.xaxis.tickvals) <= 7 and len(figure.layout.xaxis3.tickvals) <= 20
    assert len(maps(figure)[0].x) == len(bars(figure)[0].x) == clients
    assert figure.layout.height < 1100 and figure.layout.margin.t == HEAD_PX


# --- in words ----------------------------------------------------------------------------------------------


def rough_after(factor: float) -> Smoothed:
    after = tuple(tuple((value or 0.0) * factor for value in row) for row in ROUGH[0])
    return smoothed(rough=(ROUGH[0], after))


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.25, "brought the last layers of the 3 clients 50 % nearer together."),  # roughness is a squared distance
        (2.25, "drove the last layers of the 3 clients 50 % further apart."),
        (400.0, "drove the last layers of the 3 clients 20 times further apart."),
        (1.0, "left the last layers of the 3 clients as far apart as they were."),
        (0.0, "made the last layers of the 3 clients one and the same."),
    ],
)
def test_the_sentence_compares_the_distance_before_and_after(factor: float, words: str) -> None:
    assert sentence(rough_after(factor)).startswith(f"The smoothing after round 10 {words} Accuracy on “bag”")


def test_clients_that_gained_and_lost_are_counted() -> None:
    assert "rose for 1 of 3 and fell for 1. Much lower than the others: 1 before, none after." in sentence(smoothed())
    turned = smoothed(accuracy=ACCURACY[::-1])
    assert "rose for 1 of 3 and fell for 1. Much lower than the others: none before, 1 after." in sentence(turned)
    assert sentence(smoothed(), label="shirt").endswith("Accuracy on “shirt” rose for none of 3 and fell for none.")


def test_for_a_large_round_the_sentence_names_the_first_clients() -> None:
    assert "of the first 3 clients" in sentence(smoothed(), cohort=50)


def test_an_erased_layer_is_reported_as_erased() -> None:
    flat = tuple((0.0,) * 3 for _ in range(2))
    gone = smoothed(threshold=5.0, rough=(ROUGH[0], flat))
    assert sentence(gone).endswith(
        "erased the last layers of the 3 clients: they are alike, and give the same answer to everything."
    )
    kept = smoothed(threshold=3.0, rough=(ROUGH[0], flat))  # the clients share a value above the threshold
    assert max(SPECTRA["head.weight"][0]) > 3 and "one and the same" in sentence(kept)


def test_the_description_has_every_bar() -> None:
    info = collected(*run_events(smoothed()))
    words = PANEL.describe([PanelInfo(Track("this run", "main", "fedceo", ()), info)])
    assert sentence(smoothed()) in words
    assert "client 3 75 %, then 75 %; client 7 25 %, then 75 %; client 40 75 %, then 50 %" in words
    assert len(CLIENTS) == words.count("then")
