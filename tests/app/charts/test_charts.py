"""Panels draw exactly what the runs recorded, and every chart has a description in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from app import theme
from app.charts import accuracy, classes, epsilon, partition, smoothing
from app.charts.base import DASHES, Panel, Track, line, thinned
from app.texts import privacy
from engine.events import Event, Finished, Measured, Round, Spent, Started
from engine.examples.files import examples
from engine.methods import METHODS

PANELS: tuple[Panel[Any], ...] = (accuracy.PANEL, epsilon.PANEL, classes.PANEL)


def run_events(values: list[float | None], of: int = 4, noise: float = 1.0) -> tuple[Event, ...]:
    events: list[Event] = [Started("r", {}, {"classes": ["shirt", "bag"]})]
    for number, value in enumerate(values, start=1):
        events += [Round(number, of, 3), Measured(number, "accuracy", value), Measured(number, "loss", 1.0)]
        for view, value_of_view in (("outsider", number / noise), ("server", None)):
            events.append(Spent(number, view, value_of_view, "user", "zero-out", 1e-5, "rdp", "poisson"))
    return tuple(events)


ENDING = (Measured(2, "accuracy", 0.25, "class 0"), Measured(2, "accuracy", 0.75, "class 1"), Finished(2, 0.1))
MAIN = Track("this run", "main", "udp-fedavg", (*run_events([0.25, 0.5]), *ENDING), "a")
BASELINE = Track("no protection", "baseline", "fedavg", (*run_events([0.5, 0.75]), *ENDING), "b")
SEED = Track("seed 1", "seed", "udp-fedavg", run_events([0.125, 0.75]), "c")
PIN = Track("pinned: noise 2", "pin", "udp-fedavg", (*run_events([0.3, 0.4, 0.45]), *ENDING), "d", 1)


def drawn(panel: Panel[Any], *tracks: Track, dark: bool = False) -> go.Figure:
    return panel.draw(panel.collected(tracks), dark)


def named(figure: go.Figure, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_accuracy_is_what_was_measured() -> None:
    figure = drawn(accuracy.PANEL, MAIN, BASELINE, PIN)
    assert list(named(figure, "this run").y) == [25, 50]
    assert list(named(figure, "no protection").x) == [1, 2]
    assert list(named(figure, "pinned: noise 2").y) == pytest.approx([30, 40, 45])
    assert tuple(figure.layout.yaxis.range) == (0, 100)
    assert figure.layout.xaxis.range[1] == 4.5  # all requested rounds


def test_seeds_are_a_band_from_worst_to_best() -> None:
    band = named(drawn(accuracy.PANEL, MAIN, SEED), "2 seeds, worst to best")
    assert list(band.y) == [25, 75, 50, 12.5]
    assert list(band.x) == [1, 2, 2, 1]
    longer = Track("seed 2", "seed", "udp-fedavg", run_events([0.1, 0.2, 0.3]))
    both = named(drawn(accuracy.PANEL, MAIN, longer), "2 seeds, worst to best")
    assert len(both.x) == 4  # only the rounds that both seeds have finished


def test_two_bands_say_whose_seeds_they_are() -> None:
    sides = [replace(MAIN, label="A"), SEED, replace(MAIN, label="B", role="other"), replace(SEED, role="other seed")]
    names = [trace.name for trace in drawn(accuracy.PANEL, *sides).data]
    assert names[:2] == ["A: 2 seeds, worst to best", "B: 2 seeds, worst to best"]


def test_side_b_has_its_own_curve_and_its_seeds_have_none() -> None:
    sides = [replace(MAIN, label="A"), replace(MAIN, label="B", role="other"), replace(SEED, role="other seed")]
    names = {trace.name for trace in drawn(epsilon.PANEL, *sides).data}
    assert {name for name in names if "tightly" not in name} == {"A", "B"}


def test_personal_accuracy_has_its_own_line() -> None:
    own = (*run_events([0.5]), Measured(1, "accuracy", 0.875, "personal"))
    figure = drawn(accuracy.PANEL, Track("this run", "main", "m", own))
    assert list(named(figure, "this run, personal").y) == [87.5]


def test_a_round_that_could_not_be_measured_is_left_out() -> None:
    track = Track("this run", "main", "m", run_events([None, 0.5]))
    assert list(named(drawn(accuracy.PANEL, track), "this run").x) == [2]


def test_epsilon_is_shown_by_view_and_never_for_the_baseline() -> None:
    figure = drawn(epsilon.PANEL, MAIN, BASELINE, PIN)
    assert [note.text for note in figure.layout.annotations] == ["outsider"]  # the server has no finite ε
    assert [trace.name for trace in figure.data] == ["this run", "pinned: noise 2"]
    assert list(named(figure, "this run").y) == [1, 2]


def test_another_protected_unit_has_its_own_epsilon_axes() -> None:
    records = tuple(replace(event, unit="record") if isinstance(event, Spent) else event for event in MAIN.events)
    other = Track("pinned: dp-fedavg", "pin", "dp-fedavg", records, place=1)
    figure = drawn(epsilon.PANEL, MAIN, other)
    assert [trace.yaxis for trace in figure.data] == ["y", "y2"]
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text) == ("ε per client", "ε per record")
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert figure.layout.yaxis2.matches is None


def test_a_smoothing_is_shown_by_the_accuracy_before_and_after() -> None:
    events = (*run_events([0.5, 0.625, 0.5, 0.25]), Measured(2, "accuracy", 0.5, "before smoothing"),
              Measured(4, "accuracy", 0.375, "before smoothing"))  # fmt: skip
    track = Track("this run", "main", "fedceo", events)
    figure = drawn(smoothing.PANEL, track)
    before = named(figure, "this run, before")
    after = named(figure, "this run, after")
    assert list(before.x) == list(after.x) == [2, 4]
    assert list(before.y) == [50, 37.5] and list(after.y) == [62.5, 25]
    words = smoothing.PANEL.describe(smoothing.PANEL.collected([track]))
    assert "better after 1 of 2 smoothings, 0.0 points higher on average" in words
    assert smoothing.PANEL.collected([MAIN]) == []


def test_classes_have_their_names() -> None:
    figure = drawn(classes.PANEL, MAIN, BASELINE, SEED)
    assert [trace.name for trace in figure.data] == ["this run", "no protection"]
    assert list(figure.data[0].x) == ["shirt", "bag"] and list(figure.data[0].y) == [25, 75]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_panel_is_hidden_until_it_has_something_to_draw(panel: Panel[Any]) -> None:
    empty = Track("this run", "main", "m", (Started("r", {}, {}), Round(1, 4, 3)))
    assert panel.collected([empty]) == []
    assert panel.collected([empty, MAIN])[0].track == MAIN


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_every_example_can_be_drawn_and_described(panel: Panel[Any], dark: bool) -> None:
    for example in examples():
        infos = panel.collected([Track("this run", "main", "udp-fedavg", example.events, example.id)])
        if infos:
            assert panel.draw(infos, dark).data
            assert "this run" in panel.describe(infos)


def test_the_description_has_the_numbers_of_the_chart() -> None:
    infos = accuracy.PANEL.collected([MAIN, BASELINE])
    assert "this run: 50.0 % after round 2; no protection: 75.0 % after round 2" in accuracy.PANEL.describe(infos)
    assert "ε 2 per client after round 2" in epsilon.PANEL.describe(epsilon.PANEL.collected([MAIN]))
    assert "from 25.0 % for shirt to 75.0 % for bag" in classes.PANEL.describe(classes.PANEL.collected([MAIN]))


def test_the_partition_chart_counts_pictures_of_each_class() -> None:
    counts = [[3, 0], [1, 2], [0, 5]]
    figure = partition.draw(counts, dark=False)
    assert [list(row) for row in figure.data[0].z] == [[3, 1, 0], [0, 2, 5]]
    assert "3 clients hold 3 to 5 pictures each, of 1 to 2 of the 2 classes" in partition.describe(counts)
    assert len(partition.draw([[1, 1]] * 1000, dark=True).data[0].x) <= partition.SHOWN


def test_pinned_runs_of_one_method_differ_without_colour() -> None:
    pins = [line(Track("p", "pin", "udp-fedavg", (), place=place), dark=False)["dash"] for place in (1, 2, 3)]
    assert len({*pins, DASHES[0]}) == 4


def test_a_method_keeps_its_colour_in_both_themes() -> None:
    assert line(MAIN, False)["color"] == theme.colour("udp-fedavg")
    assert line(MAIN, True)["color"] == theme.colour("udp-fedavg", dark=True)


def test_b45_a_method_has_the_colour_of_its_family_and_none_reads_as_a_verdict() -> None:
    for name in METHODS.names():
        assert theme.METHODS[name] == METHODS[name].family().colour
    for name, shades in theme.FAMILIES.items():
        assert f"--family-{name}: light-dark({', '.join(shades)});" in theme.CSS
        assert not {*shades} & {*theme.PRIVATE.values(), *theme.LEAKING.values()}
    looks = [(theme.colour(name), theme.symbol(name)) for name in METHODS.names()]
    assert len(set(looks)) == len(looks)


def test_long_curves_are_thinned_and_keep_both_ends() -> None:
    assert thinned(10) == list(range(10))
    assert thinned(10_000)[0] == 0 and thinned(10_000)[-1] == 9_999 and len(thinned(10_000)) == 500


def test_every_view_has_all_its_texts() -> None:
    assert set(privacy.VIEWS) == set(privacy.SEEN_BY) == set(privacy.OBSERVER_SEES)
