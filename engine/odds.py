"""How sure an observer with even odds can become of a secret that an ε protects, and how often it may exceed that."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.epsilon import Epsilon

MOST_PERCENT = 99  # above it, a promise rules out almost nothing


@dataclass(frozen=True)
class Certainty:
    """From even odds, an observer can become this sure, either way, except with a small chance."""

    percent: int  # rounded up; 100: the promise rules out almost nothing
    exception: float  # the probability that the observer becomes surer than that


def certainty(epsilon: Epsilon) -> Certainty:
    """The certainty that a finite ε allows. An approximation allows none: the true ε can be much higher.

    The privacy loss of Gaussians without sampling has a known law, so the chance that it exceeds ε is exact. It is much
    larger than δ. Of any other mechanism only (ε, δ) is known: its loss exceeds ε + ln 2 with a chance of 2δ at most.
    """
    assert epsilon.value is not None
    value = epsilon.value
    if "approximation" in epsilon.bound:
        return Certainty(100, 1.0)
    if value == 0:
        return Certainty(50, epsilon.delta)
    if epsilon.accountant == "exact" and epsilon.bound == "":
        mu = gaussian_mu(value, epsilon.delta)
        return Certainty(percent(value), _normal(mu / 2 - value / mu))
    return Certainty(percent(value + math.log(2)), 2 * epsilon.delta)


def percent(epsilon: float) -> int:
    """e^ε / (1 + e^ε) in percent, rounded up."""
    share = 1 / (1 + math.exp(-epsilon))
    return min(100, math.ceil(100 * share - 1e-9))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The distance in standard deviations at which a Gaussian has this (ε, δ)."""
    low, high = 0.0, 1.0
    while _delta(epsilon, high) < delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _delta(epsilon, middle) < delta:
            low = middle
        else:
            high = middle
    return high


def _delta(epsilon: float, mu: float) -> float:
    """The δ of a Gaussian at ε (Balle and Wang 2018)."""
    if mu == 0:
        return 0.0
    log_second = epsilon + _log_normal(-mu / 2 - epsilon / mu)
    return _normal(mu / 2 - epsilon / mu) - math.exp(min(0.0, log_second))


def _normal(value: float) -> float:
    return math.erfc(-value / math.sqrt(2)) / 2


def _log_normal(value: float) -> float:
    """The logarithm of Φ; by its asymptotic form where Φ itself would be 0."""
    if value > -30:
        return math.log(_normal(value))
    return -value * value / 2 - math.log(-value * math.sqrt(2 * math.pi)) - 1 / value**2
