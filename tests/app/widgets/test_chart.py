"""Panels with choices: a choice stays while the run grows, and a panel without a choice follows the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.session import services
from engine.events import Event, Finished
from engine.examples.files import examples
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from tests.app.charts.makers import ACCURACY, run_events, smoothed
from tests.app.conftest import Screen
from tests.app.reading import text

pytestmark = pytest.mark.usefixtures("resting")


class LabStub:
    """The Lab with a running run. The test appends its events."""

    def __init__(self, page: AppTest) -> None:
        self.page = page
        self.page.button(key="run").click().run()
        lease = services.store().take(ProcessId.me(), 9, only={examples()[0].id})
        assert lease
        self._lease: Lease = lease

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
def lab(screen: Screen) -> LabStub:
    assert services.shared().ready(60)
    return LabStub(screen("lab"))


def test_a_choice_with_one_option_has_no_widget(lab: LabStub) -> None:
    lab.append(*run_events(smoothed(10)))
    assert "The smoothing after round 10 brought the last layers of the 3 clients 50 % nearer together" in text(
        lab.page
    )
    assert "The smoothing after round 10 removed none of 2 singular values" in text(lab.page)
    assert not [slider for slider in lab.page.select_slider if str(slider.key).startswith("choose:")]
    assert lab.label == "bag"


def test_without_a_choice_the_panel_follows_the_run(lab: LabStub) -> None:
    lab.append(*run_events(smoothed(10), smoothed(20)))
    assert lab.round("smoothness") == lab.round("spectrum") == "20"
    reversed_accuracy = smoothed(30, accuracy=(ACCURACY[0], (ACCURACY[1][1], ACCURACY[0][1])))
    lab.append(*run_events(reversed_accuracy)[1:])
    assert lab.round("smoothness") == "30" and lab.rounds("smoothness") == ["10", "20", "30"]
    assert "The smoothing after round 30 brought" in text(lab.page)


def test_a_choice_stays_while_the_run_grows(lab: LabStub) -> None:
    lab.append(*run_events(smoothed(10), smoothed(20)))
    lab.choose_round("smoothness", "10")
    lab.choose_label("shirt")
    assert "The smoothing after round 10 brought" in text(lab.page)
    lab.append(*run_events(smoothed(30))[1:])
    lab.append(Finished(30, 1.0))
    assert lab.round("smoothness") == "10" and lab.label == "shirt"
    assert lab.round("spectrum") == "30"  # each chart has its own choice
    assert "Accuracy on “shirt” rose for none of 3" in text(lab.page)


def test_at_the_end_of_the_slider_the_panel_follows_again(lab: LabStub) -> None:
    lab.append(*run_events(smoothed(10), smoothed(20)))
    lab.choose_round("spectrum", "10")
    lab.choose_round("spectrum", "20")
    lab.append(*run_events(smoothed(30))[1:])
    assert lab.round("spectrum") == "30"


def test_a_chosen_class_that_no_longer_exists_is_replaced(lab: LabStub) -> None:
    lab.page.session_state["chosen:smoothness:label"] = ("giraffe", "bag")
    lab.append(*run_events(smoothed(10)))
    assert lab.label == "bag"
