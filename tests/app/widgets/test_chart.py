"""Panels that ask: what a visitor chose stays while the run grows, and what nobody chose follows the run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from streamlit.testing.v1 import AppTest

from app.session import services
from engine.events import Event, Finished
from engine.examples.files import examples
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId
from tests.app.charts.makers import ACCURACY, smoothed, told
from tests.app.conftest import Screen
from tests.app.reading import text

pytestmark = pytest.mark.usefixtures("resting")


class LabStub:
    """The Lab with a run that goes on for as long as a test tells it to."""

    def __init__(self, page: AppTest) -> None:
        self.page = page
        self.page.button(key="run").click().run()
        lease = services.store().take(ProcessId.me(), 9, only={examples()[0].id})
        assert lease
        self._lease: Lease = lease

    def hears(self, *events: Event) -> None:
        services.store().append(self._lease, events)
        self.page.run()
        assert not self.page.exception

    def slider(self, panel: str) -> str:
        return str(next(one for one in self.page.select_slider if f"choose:{panel}:" in str(one.key)).value)

    def scrub(self, panel: str, value: str) -> None:
        next(one for one in self.page.select_slider if f"choose:{panel}:" in str(one.key)).set_value(value).run()

    def options(self, panel: str) -> Sequence[str]:
        return list(next(one for one in self.page.select_slider if f"choose:{panel}:" in str(one.key)).options)

    @property
    def label(self) -> str:
        return str(next(one for one in self.page.selectbox if "choose:smoothness:label" in str(one.key)).value)

    def see(self, label: str) -> None:
        next(one for one in self.page.selectbox if "choose:smoothness:label" in str(one.key)).set_value(label).run()


@pytest.fixture
def lab(screen: Screen) -> LabStub:
    assert services.shared().ready(60)
    return LabStub(screen("lab"))


def test_nobody_is_asked_where_there_is_one_answer(lab: LabStub) -> None:
    lab.hears(*told(smoothed(10)))
    assert "The smoothing after round 10 brought the last layers of the 3 clients 50 % nearer together" in text(
        lab.page
    )
    assert "The smoothing after round 10 removed none of 2 singular values" in text(lab.page)
    assert not [one for one in lab.page.select_slider if str(one.key).startswith("choose:")]
    assert lab.label == "bag"


def test_who_has_not_chosen_follows_the_run(lab: LabStub) -> None:
    lab.hears(*told(smoothed(10), smoothed(20)))
    assert lab.slider("smoothness") == lab.slider("spectrum") == "20"
    turned = smoothed(30, accuracy=(ACCURACY[0], (ACCURACY[1][1], ACCURACY[0][1])))
    lab.hears(*told(turned)[1:])
    assert lab.slider("smoothness") == "30" and lab.options("smoothness") == ["10", "20", "30"]
    assert "The smoothing after round 30 brought" in text(lab.page)


def test_what_was_chosen_stays_while_the_run_grows(lab: LabStub) -> None:
    lab.hears(*told(smoothed(10), smoothed(20)))
    lab.scrub("smoothness", "10")
    lab.see("shirt")
    assert "The smoothing after round 10 brought" in text(lab.page)
    lab.hears(*told(smoothed(30))[1:])
    lab.hears(Finished(30, 1.0))
    assert lab.slider("smoothness") == "10" and lab.label == "shirt"
    assert lab.slider("spectrum") == "30"  # each chart is looked at by itself
    assert "Accuracy on “shirt” rose for none of 3" in text(lab.page)


def test_at_the_end_of_the_slider_one_follows_again(lab: LabStub) -> None:
    lab.hears(*told(smoothed(10), smoothed(20)))
    lab.scrub("spectrum", "10")
    lab.scrub("spectrum", "20")
    lab.hears(*told(smoothed(30))[1:])
    assert lab.slider("spectrum") == "30"


def test_a_class_that_is_gone_gives_way(lab: LabStub) -> None:
    lab.page.session_state["chosen:smoothness:label"] = ("giraffe", "bag")
    lab.hears(*told(smoothed(10)))
    assert lab.label == "bag"
