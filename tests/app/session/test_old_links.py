"""Links from the time when Leak or the Lab was the first page."""

from __future__ import annotations

import pytest

from app.screens.leak.settings import LeakSettings
from app.screens.start.settings import StartSettings
from app.session import old_links
from app.session.old_links import screen_of
from engine.part import hyphened
from engine.specs.run import RunSpec


def test_an_address_without_a_path_opens_the_screen_that_wrote_it() -> None:
    assert screen_of({}) == "" and screen_of(StartSettings.default().link()) == ""
    assert screen_of({"method": "udp-fedavg"}) == "lab" and screen_of({"run": "0123456789ab"}) == "lab"
    assert screen_of(LeakSettings.default().link()) == "leak" and screen_of({"eyes": "client"}) == "leak"


@pytest.mark.parametrize("name", ["utm_source", "embed", "lang", "fbclid", "a.b", "methods", ".", ""])
def test_a_parameter_that_no_screen_ever_wrote_stays_on_start(name: str) -> None:
    assert screen_of({name: "x"}) == ""
    assert screen_of({name: "x", "clients": "10"}) == "lab" and screen_of({name: "x", "whose": "test-7"}) == "leak"


def test_each_setting_of_start_stays_on_start() -> None:
    for params in ({"stop": "7"}, {"content": "8"}, {"picture": "portrait"}, {"content": "8", "eyes": "client"}):
        assert screen_of(params) == ""
    assert StartSettings.own_fields().keys() - LeakSettings.own_fields().keys() == old_links.OF_START


@pytest.mark.parametrize("name", ["twin", "pins", "seeds", "run", "lr", "method.noise", "model.hidden", "dataset"])
def test_each_parameter_that_the_lab_had_opens_try(name: str) -> None:
    assert screen_of({name: "1"}) == "lab"


def test_the_settings_of_a_run_are_those_of_the_engine() -> None:
    assert {hyphened(name) for name in RunSpec.model_fields} == old_links.OF_RUN
