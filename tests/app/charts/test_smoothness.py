"""Semantic smoothness: both heat maps on one scale, the accuracy of the chosen class below, and words that fit both."""

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
from tests.app.charts.makers import ACCURACY, CLIENTS, NAMES, ROUGH, SPECTRA, by_class, smoothed, told

NO_ONE: tuple[ByClass, ByClass] = ((), ())
CHOICES = PANEL.choices
assert CHOICES


def found(*events: Event, **answers: str) -> Smoothness:
    assert CHOICES
    info = PANEL.collect(events)
    assert info
    return CHOICES.choose(info, {**{one.name: one.chosen for one in CHOICES.choices(info)}, **answers})


def drawn(*events: Event, dark: bool = False, **answers: str) -> go.Figure:
    return PANEL.draw([PanelInfo(Track("this run", "main", "fedceo", events), found(*events, **answers))], dark)


def said(*smoothings: Smoothed, cohort: int = 3, **answers: str) -> str:
    assert CHOICES
    return CHOICES.describe(found(*told(*smoothings, cohort=cohort), **answers))


def maps(figure: go.Figure) -> list[Any]:
    return [one for one in figure.data if one.type == "heatmap"]


def bars(figure: go.Figure) -> list[Any]:
    return [one for one in figure.data if one.type == "bar"]


# --- what is found -----------------------------------------------------------------------------------------


def test_it_begins_with_the_last_smoothing_and_the_class_that_changed_most() -> None:
    info = found(*told(smoothed(10), smoothed(20, threshold=2.0)))
    assert info.now.round == 20 and info.names[info.label] == "bag"
    assert info.scores == ((0.75, 0.25, 0.75), (0.75, 0.75, 0.5))
    assert found(*told(smoothed(10), smoothed(20)), round="10").now.round == 10
    assert found(*told(smoothed()), label="shirt").label == 0


@pytest.mark.parametrize(
    "events",
    [
        (Measured(1, "accuracy", 0.5),),
        told(smoothed(clients=(), rough=NO_ONE, accuracy=NO_ONE)),  # the server had only the sum
        told(
            smoothed(clients=(3,), rough=(((0.0,),) * 2,) * 2, accuracy=(((0.5,),) * 2,) * 2)
        ),  # nobody to compare with
        told(smoothed(rough=NO_ONE)),  # a last layer without a row for each class
    ],
    ids=["silent", "sum", "alone", "no rows"],
)
def test_it_stays_away_where_there_is_nothing_to_compare(events: tuple[Event, ...]) -> None:
    assert PANEL.collected([Track("this run", "main", "fedceo", events)]) == []


def test_it_shows_the_run_itself_and_no_other() -> None:
    tracks = [Track("p", role, "fedceo", told(smoothed())) for role in ("pin", "seed", "twin")]
    assert PANEL.collected(tracks) == []
    assert len(PANEL.collected([Track("this run", "main", "fedceo", told(smoothed())), *tracks])) == 1


def test_classes_without_names_are_numbered() -> None:
    assert found(*told(smoothed(), names=["only one"])).names == ("class 0", "class 1")


@pytest.mark.parametrize(
    ("scores", "places"),
    [
        ((0.75, 0.25, 0.75), {1}),
        ((0.75, 0.5, 0.75), set()),  # two thirds of the median are not yet much lower
        ((0.09, 0.0, 0.09), set()),  # less than ten points
        ((0.75, None, 0.25), set()),  # of two nobody is the other's rule
        ((0.9, 0.9, 0.0, 0.9, 0.1), {2, 4}),
    ],
)
def test_who_is_much_lower_than_the_others(scores: tuple[float | None, ...], places: set[int]) -> None:
    clients = range(len(scores))
    one = smoothed(clients=clients, rough=((scores,),) * 2, accuracy=((scores,),) * 2)
    assert found(*told(one, names=["bag"])).low == (frozenset(places), frozenset(places))


# --- the chart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_both_maps_hold_the_roughness_on_one_scale(dark: bool) -> None:
    figure = drawn(*told(smoothed()), dark=dark)
    before, after = maps(figure)
    assert [list(row) for row in before.z] == [[4, 8, 4], [4, 4, 0]]
    assert [list(row) for row in after.z] == [[1, 2, 1], [1, 1, 0]]
    assert list(before.x) == ["3", "7", "40"] and list(before.y) == ["shirt", "bag"]
    assert before.coloraxis == after.coloraxis == "coloraxis"
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 8)
    scale = [colour for _, colour in figure.layout.coloraxis.colorscale]
    assert scale == list(theme.SHADES["dark" if dark else "light"])
    meaning = {*theme.PRIVATE.values(), *theme.LEAKING.values()}
    assert not meaning & {one.upper() for one in scale}
    assert (
        "alike" in figure.layout.coloraxis.colorbar.ticktext[0]
        and "apart" in figure.layout.coloraxis.colorbar.ticktext[-1]
    )


def test_what_is_far_smaller_goes_by_powers_and_nothing_stands_at_the_end() -> None:
    far = 8 / (SPREAD + 10)
    figure = drawn(*told(smoothed(rough=(ROUGH[0], ((far, far, far), (far, 1.0, 0.0))))))
    _, after = maps(figure)
    assert after.z[0][0] == after.z[1][2] == pytest.approx(math.log10(far)) == figure.layout.coloraxis.cmin
    assert after.customdata[1][2] == 0  # what is shown to the pointer is what was measured
    assert figure.layout.coloraxis.colorbar.ticktext[0] == f"{far:.2g} alike"


def test_what_is_nearly_the_same_is_not_torn_apart() -> None:
    figure = drawn(*told(smoothed(rough=(((1.0,) * 3,) * 2, ((0.99,) * 3,) * 2))))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0.8, 1)


def test_bars_are_the_accuracy_of_the_chosen_class() -> None:
    before, after = bars(drawn(*told(smoothed())))
    assert list(before.y) == [75, 25, 75] and list(after.y) == [75, 75, 50]
    assert list(before.text) == ["", SIGN, ""] and list(after.text) == ["", "", ""]
    assert before.marker.color == theme.PAPER["light"] and after.marker.color == theme.colour("fedceo")
    plain = bars(drawn(*told(smoothed()), label="shirt"))
    assert list(plain[0].y) == [50, 50, 50] and {*plain[0].text, *plain[1].text} == {""}


def test_the_sign_is_explained_where_it_stands() -> None:
    notes = [[note.text for note in drawn(*told(smoothed()), label=name).layout.annotations] for name in NAMES]
    assert [any("much lower" in text for text in texts) for texts in notes] == [False, True]
    assert all("before smoothing" in texts and "after smoothing" in texts for texts in notes)


@pytest.mark.parametrize("dark", [False, True])
def test_the_row_of_the_chosen_class_is_framed_in_both_maps(dark: bool) -> None:
    figure = drawn(*told(smoothed()), dark=dark)
    side = "dark" if dark else "light"
    assert {(one.xref, one.y0, one.y1) for one in figure.layout.shapes} == {("x", 0.5, 1.5), ("x2", 0.5, 1.5)}
    assert {one.line.color for one in figure.layout.shapes} == {theme.INK[side], theme.PAPER[side]}
    assert list(figure.layout.yaxis.ticktext) == ["shirt", "<b>bag</b>"]


def test_a_class_that_the_test_data_lack_has_no_bars() -> None:
    nobody = ((0.5, 0.5, 0.5), (None, None, None))
    one = smoothed(accuracy=(nobody, nobody))
    assert list(bars(drawn(*told(one), label="bag"))[0].y) == [None, None, None]
    assert "The test data hold no “bag”." in said(one, label="bag")


@pytest.mark.parametrize(("classes", "clients"), [(2, 5), (47, 20), (10, 100)])
def test_every_class_is_named_and_clients_as_far_as_they_fit(classes: int, clients: int) -> None:
    rough, scores = by_class(classes, clients, 1.0), by_class(classes, clients, 0.1)
    one = smoothed(clients=range(clients), rough=(rough, rough), accuracy=(scores, scores))
    figure = drawn(*told(one, names=[f"c{label}" for label in range(classes)]))
    assert len(figure.layout.yaxis.ticktext) == classes
    assert 1 < len(figure.layout.xaxis.tickvals) <= 7 and len(figure.layout.xaxis3.tickvals) <= 20
    assert len(maps(figure)[0].x) == len(bars(figure)[0].x) == clients
    assert figure.layout.height < 1100 and figure.layout.margin.t == HEAD_PX


# --- in words ----------------------------------------------------------------------------------------------


def rough_after(factor: float) -> Smoothed:
    return smoothed(rough=(ROUGH[0], tuple(tuple((one or 0.0) * factor for one in row) for row in ROUGH[0])))


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
def test_the_sentence_is_true_both_ways(factor: float, words: str) -> None:
    assert said(rough_after(factor)).startswith(f"The smoothing after round 10 {words} Accuracy on “bag”")


def test_who_gained_and_who_lost_is_counted() -> None:
    assert "rose for 1 of 3 and fell for 1. Much lower than the others: 1 before, none after." in said(smoothed())
    turned = smoothed(accuracy=ACCURACY[::-1])
    assert "rose for 1 of 3 and fell for 1. Much lower than the others: none before, 1 after." in said(turned)
    assert said(smoothed(), label="shirt").endswith("Accuracy on “shirt” rose for none of 3 and fell for none.")


def test_of_a_large_round_the_first_clients_are_told_of() -> None:
    assert "of the first 3 clients" in said(smoothed(), cohort=50)


def test_nothing_left_is_not_called_alike_without_a_word() -> None:
    flat = tuple((0.0,) * 3 for _ in range(2))
    gone = smoothed(threshold=5.0, rough=(ROUGH[0], flat))
    assert said(gone).endswith(
        "erased the last layers of the 3 clients: they are alike, and give the same answer to everything."
    )
    kept = smoothed(threshold=3.0, rough=(ROUGH[0], flat))  # the clients share a value above that
    assert max(SPECTRA["head.weight"][0]) > 3 and "one and the same" in said(kept)


def test_those_who_cannot_see_it_hear_every_bar() -> None:
    info = found(*told(smoothed()))
    words = PANEL.describe([PanelInfo(Track("this run", "main", "fedceo", ()), info)])
    assert said(smoothed()) in words
    assert "client 3 75 %, then 75 %; client 7 25 %, then 75 %; client 40 75 %, then 50 %" in words
    assert len(CLIENTS) == words.count("then")
