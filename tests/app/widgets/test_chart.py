"""Panels with choices: a choice stays while the run grows, and a panel without a choice follows the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.session import services
from engine.events import Event, Finished
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from engine.specs.run import RunSpec
from tests.app.charts.makers import ACCURACY, run_events, smoothed
from tests.app.reading import text

pytestmark = pytest.mark.usefixtures("resting")


def draw() -> None:
    """A page with the panels that have choices."""
    import streamlit as st

    from app.batch.view import find
    from app.charts import smoothness, spectrum
    from app.charts.base import Track
    from app.widgets import chart

    run = find(st.session_state["run"])
    assert run
    chart.show_with_choices((smoothness.PANEL, spectrum.PANEL), [Track("A", "main", run.method, run.events, run.id)])


class ChartPage:
    """The panels of a running run. The test appends its events."""

    def __init__(self) -> None:
        spec = RunSpec(method="fedceo", seed=99)  # no stored example takes its place
        services.store().submit(spec.id, spec.canonical())
        lease = services.store().take(ProcessId.me(), 9, only={spec.id})
        assert lease
        self._lease: Lease = lease
        self.page = AppTest.from_function(draw, default_timeout=60)
        self.page.session_state["run"] = spec.id

    def append(self, *events: Event) -> None:
        """Append events to the run, and draw the page again."""
        services.store().append(self._lease, events)
        self.page.run()
        assert not self.page.exception

    def _slider(self, panel: str) -> Any:
        return next(slider for slider in self.page.select_slider if f"choose:{panel}:" in str(slider.key))

    def round(self, panel: str) -> str:
        return str(self._slider(panel).value)

    def choose_round(self, panel: str, value: str) -> None:
        self._slider(panel).set_value(value).run()

    def rounds(self, panel: str) -> Sequence[str]:
        return list(self._slider(panel).options)

    def _label_box(self) -> Any:
        return next(box for box in self.page.selectbox if "choose:smoothness:label" in str(box.key))

    @property
    def label(self) -> str:
        return str(self._label_box().value)

    def choose_label(self, label: str) -> None:
        self._label_box().set_value(label).run()


@pytest.fixture
def charts(home: Path) -> ChartPage:
    assert services.shared().ready(60)
    return ChartPage()


def test_a_choice_with_one_option_has_no_widget(charts: ChartPage) -> None:
    charts.append(*run_events(smoothed(10)))
    assert "The smoothing after round 10 brought the last layers of the 3 clients 50 % nearer together" in text(
        charts.page
    )
    assert "The smoothing after round 10 removed none of 2 singular values" in text(charts.page)
    assert not [slider for slider in charts.page.select_slider if str(slider.key).startswith("choose:")]
    assert charts.label == "bag"


def test_without_a_choice_the_panel_follows_the_run(charts: ChartPage) -> None:
    charts.append(*run_events(smoothed(10), smoothed(20)))
    assert charts.round("smoothness") == charts.round("spectrum") == "20"
    reversed_accuracy = smoothed(30, accuracy=(ACCURACY[0], (ACCURACY[1][1], ACCURACY[0][1])))
    charts.append(*run_events(reversed_accuracy)[1:])
    assert charts.round("smoothness") == "30" and charts.rounds("smoothness") == ["10", "20", "30"]
    assert "The smoothing after round 30 brought" in text(charts.page)


def test_a_choice_stays_while_the_run_grows(charts: ChartPage) -> None:
    charts.append(*run_events(smoothed(10), smoothed(20)))
    charts.choose_round("smoothness", "10")
    charts.choose_label("shirt")
    assert "The smoothing after round 10 brought" in text(charts.page)
    charts.append(*run_events(smoothed(30))[1:])
    charts.append(Finished(30, 1.0))
    assert charts.round("smoothness") == "10" and charts.label == "shirt"
    assert charts.round("spectrum") == "30"  # each chart has its own choice
    assert "Accuracy on “shirt” rose for none of 3" in text(charts.page)


def test_at_the_end_of_the_slider_the_panel_follows_again(charts: ChartPage) -> None:
    charts.append(*run_events(smoothed(10), smoothed(20)))
    charts.choose_round("spectrum", "10")
    charts.choose_round("spectrum", "20")
    charts.append(*run_events(smoothed(30))[1:])
    assert charts.round("spectrum") == "30"


def test_a_chosen_class_that_no_longer_exists_is_replaced(charts: ChartPage) -> None:
    charts.page.session_state["chosen:smoothness:label"] = ("giraffe", "bag")
    charts.append(*run_events(smoothed(10)))
    assert charts.label == "bag"
