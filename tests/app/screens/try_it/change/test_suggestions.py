"""The changes that Try suggests for side B."""

from __future__ import annotations

import pytest

from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import suggestions
from app.screens.try_it.settings import TrySettings
from app.session import run_settings, services

pytestmark = pytest.mark.usefixtures("home", "resting")


@pytest.fixture(autouse=True)
def loaded() -> None:
    assert services.shared().ready(60)


def epsilon(run: dict[str, object]) -> float:
    answer = suggestions.epsilon_of(run, "server")
    assert answer and answer.value
    return answer.value


@pytest.mark.slow
def test_half_the_epsilon_is_at_most_half() -> None:
    run = TrySettings.default().run
    halved = {**run, **suggestions.half(run, "server")}
    assert 0.45 * epsilon(dict(run)) < epsilon(halved) <= 0.5 * epsilon(dict(run))


def test_another_protection_keeps_the_epsilon_and_each_phone_adds_the_noise() -> None:
    run = TrySettings.default().run
    changes = suggestions.another(run, "server")
    other = run_settings.completed({**{p: v for p, v in run.items() if not p.startswith("method")}, **changes})
    assert (other["method"], other["method.noise-split"]) == ("fedceo", "full-local")
    assert epsilon(other) == pytest.approx(epsilon(dict(run)), rel=0.05)


def test_a_method_whose_server_adds_the_noise_keeps_its_default() -> None:
    assert "method.noise-split" not in suggestions.protection("ppsgd")
    assert suggestions.protection("udp-fedavg")["method.noise-split"] == "full-local"


def test_without_noise_side_b_starts_with_some() -> None:
    run = run_settings.completed({"method": "fedavg"})
    other = run_settings.completed({**run, **suggestions.half(run, "server")})
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
    assert suggestions.label_of_half(run, "server") == label
