"""The sentences about ε, odds, costs and durations."""

from __future__ import annotations

import math

import pytest

from app.texts import numbers, privacy
from engine.epsilon import Epsilon
from engine.records import VIEWS


def test_odds_are_e_to_the_epsilon() -> None:
    assert "at most 2.72 times" in privacy.odds("outsider", "user", 1.0)
    assert "at most 128 times" not in privacy.odds("outsider", "user", 4.85)
    assert numbers.times(4.85) == "130"
    assert numbers.times(20) == "10⁹"
    assert numbers.times(math.log(1e6)) == "1,000,000"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("unit", ["user", "record"])
def test_every_view_has_its_sentence(view: str, unit: str) -> None:
    sentences = [privacy.odds(view, unit, epsilon) for epsilon in (None, 0.0, 1.0, 11.0, 51.0)]
    assert len(set(sentences)) == 5
    assert unit == "user" or "picture or a sentence" in sentences[2] or view in ("aggregate", "server")
    assert "nothing is promised" in sentences[0] and "learns nothing" in sentences[1]
    assert "says nothing" in sentences[3] and "no protection worth the name" in sentences[4]


def test_the_terms_of_an_epsilon() -> None:
    terms = privacy.terms(Epsilon(2.0, "server", "record", "add-remove", 1e-5, "prv", "poisson", "upper bound"))
    for word in ("per record", "seen by the server", "add-remove", "δ = 1e-5", "prv", "worst record", "upper bound"):
        assert word in terms


@pytest.mark.parametrize(
    ("accuracy", "baseline", "message"),
    [
        (0.5, 0.8, "costs 30 points"),
        (0.8, 0.801, "almost nothing"),
        (0.82, 0.80, "almost nothing"),
        (None, 0.8, ""),
        (0.5, None, ""),
    ],
)
def test_the_cost_is_the_difference(accuracy: float | None, baseline: float | None, message: str) -> None:
    assert message in privacy.cost(accuracy, baseline)
    assert bool(message) == bool(privacy.cost(accuracy, baseline))


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [(None, ""), (0.2, "under a second"), (12.4, "12 s"), (600.0, "10 min"), (7200.0, "2.0 h")],
)
def test_durations(seconds: float | None, duration: str) -> None:
    assert numbers.duration(seconds) == duration


def test_numbers_are_short() -> None:
    assert [numbers.epsilon(value) for value in (None, 4.8512, 90.39, 684.2, 12345.6)] == [
        "∞",
        "4.85",
        "90.4",
        "684",
        "12,000",
    ]
    assert numbers.percent(0.5684) == "56.8 %" and numbers.percent(None) == "–"
