"""Links from the time when Leak or the Lab was the first page."""

from __future__ import annotations

from app.screens.leak.settings import LeakSettings
from app.screens.start.settings import StartSettings
from app.session.old_links import screen_of


def test_an_address_without_a_path_opens_the_screen_that_wrote_it() -> None:
    assert screen_of({}) == "" and screen_of(StartSettings.default().link()) == ""
    assert screen_of({"method": "udp-fedavg"}) == "lab" and screen_of({"run": "0123456789ab"}) == "lab"
    assert screen_of(LeakSettings.default().link()) == "leak" and screen_of({"eyes": "client"}) == "leak"
