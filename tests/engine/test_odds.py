"""The certainty that an ε allows: rounded up, and with the chance that it is exceeded."""

from __future__ import annotations

import numpy as np
import pytest

from engine.epsilon import Epsilon
from engine.odds import Certainty, certainty, gaussian_mu, percent
from engine.privacy.accountant import epsilon_exact


def of(value: float, accountant: str = "exact", bound: str = "", delta: float = 1e-5) -> Certainty:
    return certainty(Epsilon(value, "outsider", "user", "zero-out", delta, accountant, "all", bound))


def test_a09_the_sentence_has_its_exception() -> None:
    """ε 1 at δ 1e-5 is exceeded in 1 of 6,200 cases, 16 times as often as δ says."""
    gaussian = of(1.0)
    assert gaussian.percent == 74 and 6200 <= 1 / gaussian.exception < 6300
    assert of(1.0, "prv") == Certainty(85, 2e-5)
    assert of(1.0, bound="upper bound") == Certainty(85, 2e-5)


def test_a09_the_percentage_is_rounded_up() -> None:
    assert [percent(epsilon) for epsilon in (0.0, 0.01, 1.0, 3.0, 4.59, 4.6, 90.0)] == [50, 51, 74, 96, 99, 100, 100]


@pytest.mark.parametrize(("epsilon", "multiple"), [(0.1, 111), (1.0, 16), (3.0, 7)])
def test_the_exception_is_many_times_delta(epsilon: float, multiple: float) -> None:
    assert of(epsilon).exception / 1e-5 == pytest.approx(multiple, rel=0.05)


def test_the_exception_is_the_share_of_losses_above_epsilon() -> None:
    """The privacy loss of outputs drawn from a Gaussian, counted."""
    mu = gaussian_mu(0.5, 0.01)
    outputs = np.random.default_rng(0).normal(mu, 1, 1_000_000)
    losses = ((outputs**2) - (outputs - mu) ** 2) / 2
    assert of(0.5, delta=0.01).exception == pytest.approx(float((losses > 0.5).mean()), rel=0.02)


def test_an_approximation_allows_no_odds() -> None:
    assert of(0.1, "prv", "approximation") == Certainty(100, 1.0)


def test_an_epsilon_of_0_is_exceeded_with_delta() -> None:
    assert of(0.0) == Certainty(50, 1e-5)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.5, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_the_distance_is_that_of_the_accountant(mu: float, delta: float) -> None:
    epsilon = epsilon_exact(mu, delta)
    if epsilon > 0:
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)
