"""What Run requests, and in which order."""

from __future__ import annotations

import pytest

from app.screens.try_it import requests as try_requests
from app.screens.try_it import sides as try_sides
from app.screens.try_it.settings import TrySettings
from app.session import run_settings, services
from engine.jobs.batches import BatchMember

pytestmark = pytest.mark.usefixtures("home", "resting")


@pytest.fixture(autouse=True)
def loaded() -> None:
    assert services.shared().ready(60)


def members(settings: TrySettings, live: bool = False) -> list[BatchMember]:
    return try_requests.members_of(try_sides.requests_of(settings), live)


def kind(member: BatchMember) -> str:
    """`train` or the name of the attack, with its method and noise."""
    run = member.spec.get("run", member.spec)
    attack = member.spec.get("attack", {}).get("name", "train")
    return f"{attack} {run['method']['name']} {run['method'].get('noise', '')} {run['seed']}".strip()


def default(**changes: object) -> TrySettings:
    settings = TrySettings.default()
    return settings.with_(run=run_settings.completed({**settings.run, **changes}))


def test_what_is_stored_is_not_requested_but_live() -> None:
    assert members(TrySettings.default()) == []
    assert len(members(TrySettings.default(), live=True)) == 8  # two trainings, and three attacks on each


def test_what_shows_something_first_starts_first() -> None:
    settings = default(rounds=7).with_(b={"method.noise": 4.0}, seeds=2)
    assert [kind(member) for member in members(settings)] == [
        "analytic udp-fedavg 2.0 0",
        "analytic udp-fedavg 4.0 0",
        "train udp-fedavg 2.0 0",
        "train udp-fedavg 4.0 0",
        "map udp-fedavg 2.0 0",
        "inverting-gradients udp-fedavg 2.0 0",
        "map udp-fedavg 4.0 0",
        "inverting-gradients udp-fedavg 4.0 0",
        "train fedavg  0",
        "analytic fedavg  0",
        "map fedavg  0",
        "inverting-gradients fedavg  0",
        "train udp-fedavg 2.0 1",
        "train udp-fedavg 4.0 1",
    ]


def test_an_attack_on_the_first_round_waits_for_no_training() -> None:
    own = {kind(member): member.after for member in members(default(rounds=7).with_(when="first"))}
    assert own["analytic udp-fedavg 2.0 0"] == own["map udp-fedavg 2.0 0"] == ""
    assert own["map fedavg  0"] != ""  # the training of the baseline is before its attacks


def test_only_the_instant_attack_on_a_short_run_trains_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_requests, "REPLAY_S", 1e6)
    short = {kind(member): member.after for member in members(default(rounds=7))}
    assert short["analytic udp-fedavg 2.0 0"] == "" and short["map udp-fedavg 2.0 0"] != ""
    assert short["analytic fedavg  0"] != ""
    monkeypatch.setattr(try_requests, "REPLAY_S", 0.0)
    long = {kind(member): member.after for member in members(default(rounds=7))}
    assert long["analytic udp-fedavg 2.0 0"] != ""
