"""What Run requests, in which order; and the changes that Try suggests."""

from __future__ import annotations

import pytest

from app.screens.try_it import requests as try_requests
from app.screens.try_it import sides as try_sides
from app.screens.try_it import texts as try_texts
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


def test_only_the_instant_attack_on_a_short_run_trains_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_requests, "REPLAY_S", 1e6)
    short = {kind(member): member.after for member in members(default(rounds=7))}
    assert short["analytic udp-fedavg 2.0 0"] == "" and short["map udp-fedavg 2.0 0"] != ""
    assert short["analytic fedavg  0"] != ""
    monkeypatch.setattr(try_requests, "REPLAY_S", 0.0)
    long = {kind(member): member.after for member in members(default(rounds=7))}
    assert long["analytic udp-fedavg 2.0 0"] != ""


def epsilon(run: dict[str, object]) -> float:
    answer = try_requests.epsilon_of(run, "server")
    assert answer and answer.value
    return answer.value


def test_half_the_epsilon_is_at_most_half() -> None:
    run = TrySettings.default().run
    halved = {**run, **try_requests.half(run, "server")}
    assert 0.45 * epsilon(dict(run)) < epsilon(halved) <= 0.5 * epsilon(dict(run))


def test_another_protection_keeps_the_epsilon_and_each_phone_adds_the_noise() -> None:
    run = TrySettings.default().run
    changes = try_requests.another(run, "server")
    other = run_settings.completed({**{p: v for p, v in run.items() if not p.startswith("method")}, **changes})
    assert (other["method"], other["method.noise-split"]) == ("fedceo", "full-local")
    assert epsilon(other) == pytest.approx(epsilon(dict(run)), rel=0.05)


def test_a_method_whose_server_adds_the_noise_keeps_its_default() -> None:
    assert "method.noise-split" not in try_requests.protection("ppsgd")
    assert try_requests.protection("udp-fedavg")["method.noise-split"] == "full-local"


def test_without_noise_side_b_starts_with_some() -> None:
    run = run_settings.completed({"method": "fedavg"})
    other = run_settings.completed({**run, **try_requests.half(run, "server")})
    assert other["method"] == "udp-fedavg" and other["method.noise"] > 0


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, try_texts.HALF),
        ({"method": "fedavg"}, try_texts.SOME_NOISE),
        ({"method": "ppsgd"}, try_texts.MORE_NOISE),  # no ε against the server
    ],
)
def test_the_first_suggestion_says_what_it_does(changes: dict[str, str], label: str) -> None:
    run = run_settings.completed(changes) if changes else TrySettings.default().run
    assert try_requests.label_of_half(run, "server") == label
