"""The accountants compared with Opacus, with the numbers of an independent library, and with their definitions."""

from __future__ import annotations

import json
import math
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent
from scipy.stats import norm

from engine.privacy.accountant import (
    FEW_ORDERS,
    ORDERS,
    bounding_curve,
    curve,
    epsilon_exact,
    epsilon_rdp,
    exact_epsilons,
)
from engine.privacy.prv import epsilon_prv
from engine.records import Gaussian, Laplace, Renyi

ROWS = json.loads(Path(__file__).with_name("epsilon.json").read_text())["rows"]
steady = settings(derandomize=True, deadline=None, max_examples=25)
noises = st.floats(0.3, 30)
rates = st.floats(0.001, 1)


def prv(z: float, rate: float, steps: int) -> float:
    epsilon = epsilon_prv([(z, rate, steps)], 1e-5)
    assert epsilon is not None
    return epsilon


def renyi(z: float, rate: float, steps: int, delta: float = 1e-5) -> float:
    return float(epsilon_rdp(steps * curve(Gaussian(z, rate)), delta))


def test_the_orders():
    expected = [1 + i / 100 for i in range(1, 101)] + [2 + i / 10 for i in range(1, 91)] + list(range(12, 512))
    assert len(ORDERS) == 690
    np.testing.assert_allclose(ORDERS, expected)
    assert set(FEW_ORDERS) <= set(ORDERS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['noise_multiplier']}-{row['sample_rate']}-{row['steps']}")
def test_conformance(row):
    z, rate, steps, delta = row["noise_multiplier"], row["sample_rate"], row["steps"], row["delta"]
    rdp = renyi(z, rate, steps, delta)
    assert rdp == pytest.approx(row["epsilon_rdp"], rel=0.02)
    assert rdp >= row["epsilon_pld"] - 0.02
    assert epsilon_prv([(z, rate, steps)], delta) == pytest.approx(row["epsilon_pld"], abs=0.02)
    if rate == 1:
        assert epsilon_exact(math.sqrt(steps) / z, delta) == pytest.approx(row["epsilon_pld"], abs=0.001)


@pytest.mark.parametrize(("z", "rate"), [(1.0, 0.1), (0.3, 0.05), (0.1, 0.5), (5.0, 0.9), (30.0, 0.01), (0.5, 0.999)])
def test_curve_is_that_of_opacus(z, rate):
    indices = [0, 2, 50, 99, 104, 111, 150, 189, 190, 250, 400, 689]
    expected = compute_rdp(q=rate, noise_multiplier=z, steps=1, orders=ORDERS[indices])
    np.testing.assert_allclose(curve(Gaussian(z, rate))[indices], expected, rtol=1e-6, atol=1e-10)


def test_conversion_is_that_of_opacus():
    for z, rate, steps in [(1.0, 0.1, 300), (0.5, 1.0, 3), (4.0, 0.01, 100)]:
        vector = steps * curve(Gaussian(z, rate))
        expected, _ = get_privacy_spent(orders=ORDERS, rdp=vector, delta=1e-5)
        assert float(epsilon_rdp(vector, 1e-5)) == pytest.approx(expected, rel=1e-12)


def test_conversion_is_vectorised_never_negative_and_zero_for_nothing():
    vectors = np.stack([np.zeros(690), 1e-12 * ORDERS, curve(Gaussian(1.0)), np.full(690, np.inf)])
    epsilons = epsilon_rdp(vectors, 1e-5)
    assert epsilons[0] == 0 and (epsilons >= 0).all() and math.isinf(epsilons[3])
    assert epsilons[2] == epsilon_rdp(vectors[2], 1e-5)
    assert epsilon_rdp(vectors[1], 0.9) == 0
    np.testing.assert_array_equal(epsilon_rdp(vectors, [1e-5] * 4), epsilons)


def test_full_rate_is_a_closed_form_and_no_noise_is_infinite():
    np.testing.assert_allclose(curve(Gaussian(3.0)), ORDERS / 18)
    assert np.isinf(curve(Gaussian(0.0))).all()
    assert np.isinf(curve(Gaussian(0.0, 0.1))).all()
    assert (curve(Gaussian(1.0, 0.0)) == 0).all()
    assert not curve(Gaussian(1.0, 0.1)).flags.writeable  # shared through the cache


def test_steps_do_not_change_the_curve_of_one_step():
    assert curve(Gaussian(1.0, 0.1, 7)) is curve(Gaussian(1.0, 0.1))
    np.testing.assert_array_equal(curve(Laplace(2.0, 9)), curve(Laplace(2.0)))


@pytest.mark.parametrize("z", [1e-300, 1e-4, 0.009, 1e6, 1e300])
def test_extreme_noise_neither_fails_nor_exceeds_the_unsampled_curve(z):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampled = curve(Gaussian(z, 0.1))
        unsampled = curve(Gaussian(z))
    assert not np.isnan(sampled).any()
    assert (sampled <= unsampled).all() and (sampled >= 0).all()


def test_tiny_noise_is_bounded_from_above():
    opacus = compute_rdp(q=0.1, noise_multiplier=0.008, steps=1, orders=ORDERS[[4, 49, 120, 195]])
    assert (curve(Gaussian(0.008, 0.1))[[4, 49, 120, 195]] >= opacus * (1 - 1e-12)).all()


@steady
@given(noises, rates, st.integers(1, 500))
def test_few_orders_bound_all_orders_closely(z, rate, steps):
    full = renyi(z, rate, steps)
    few = float(epsilon_rdp(steps * bounding_curve(Gaussian(z, rate)), 1e-5, FEW_ORDERS))
    assert full * (1 - 1e-9) <= few <= 1.5 * full + 0.05  # on a fine grid of all three: 1.38 + 0.05


@steady
@given(noises, rates, st.integers(1, 300))
def test_renyi_grows_with_steps_and_rate_and_falls_with_noise(z, rate, steps):
    epsilon = renyi(z, rate, steps)
    assert renyi(z, rate, steps + 10) >= epsilon
    assert renyi(z, rate * 0.7, steps) <= epsilon + 1e-9
    assert renyi(z * 1.3, rate, steps) <= epsilon + 1e-9
    assert renyi(z, rate, steps, 1e-6) >= epsilon


def test_laplace_ends_at_its_pure_epsilon():
    values = curve(Laplace(0.5))
    assert (np.diff(values) >= -1e-12).all()
    assert 1.9 < values[-1] <= 2
    order, x = ORDERS[150], np.linspace(-60, 60, 2_000_001)
    powers = np.exp(order * -np.abs(x) / 0.5 + (order - 1) * np.abs(x - 1) / 0.5)
    moment = np.trapezoid(powers, x)
    assert values[150] == pytest.approx(math.log(moment) / (order - 1), rel=1e-4)
    assert np.isinf(curve(Laplace(0.0))).all()


def test_given_renyi_curves_are_interpolated_and_infinite_beyond_their_orders():
    known = (2.0, 4.0, 16.0)
    values = curve(Renyi(known, tuple(order / 2 for order in known)))  # the curve of Gaussian(1)
    within = ORDERS <= 16
    assert (values[within] >= ORDERS[within] / 2 - 1e-12).all()
    np.testing.assert_allclose(values[np.isin(ORDERS, known)], [1, 2, 8])
    assert np.isinf(values[~within]).all()
    assert values[0] == pytest.approx(1)  # below the first order: the value of the first
    assert np.isinf(curve(Renyi((2.0, 4.0), (1.0, math.inf)))[ORDERS > 2]).all()


def excess(epsilon: float, mu: float) -> float:
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@steady
@given(st.floats(0.05, 15), st.floats(-9, -1))
def test_the_exact_epsilon_satisfies_its_definition(mu, exponent):
    delta = 10**exponent
    epsilon = epsilon_exact(mu, delta)
    if epsilon == 0:
        assert excess(0, mu) <= delta
    else:
        assert excess(epsilon, mu) == pytest.approx(delta, rel=1e-5)


def test_the_exact_epsilon_is_stable_at_both_ends():
    assert epsilon_exact(0, 1e-5) == 0
    assert epsilon_exact(1e-7, 1e-5) == 0
    assert math.isinf(epsilon_exact(math.inf, 1e-5))
    for mu in (300.0, 1414.0, 1e5):  # without the second term, which is small here: ε = mu²/2 + mu·Φ⁻¹(1 - δ)
        bound = mu * mu / 2 + mu * norm.isf(1e-5)
        assert bound * (1 - 1e-4) < epsilon_exact(mu, 1e-5) < bound
    epsilons = exact_epsilons(np.geomspace(1e-6, 1e4, 200), 1e-5)
    assert (np.diff(epsilons) >= 0).all() and np.isfinite(epsilons).all()
    assert epsilons[100] == epsilon_exact(float(np.geomspace(1e-6, 1e4, 200)[100]), 1e-5)


def test_the_exact_epsilon_is_below_renyi_and_near_prv():
    for z, steps in [(1.0, 30), (5.0, 3), (20.0, 100)]:
        exact = epsilon_exact(math.sqrt(steps) / z, 1e-5)
        assert exact < renyi(z, 1.0, steps)
        assert exact <= prv(z, 1.0, steps) <= exact + 0.02


@pytest.mark.slow
def test_prv_is_that_of_opacus():
    for history in ([(1.0, 0.1, 300)], [(1.5, 0.1, 270), (1.5 / math.sqrt(10), 1.0, 3)]):
        opacus = PRVAccountant()
        opacus.history = history
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            assert epsilon_prv(history, 1e-5) == pytest.approx(opacus.get_epsilon(1e-5), abs=2e-3)


def test_small_prv_results_stay_below_renyi():
    for z in (10.0, 30.0, 100.0):
        assert prv(z, 0.1, 30) < renyi(z, 0.1, 30)


def test_no_warning_leaves_the_accountants(capfd):
    before = list(warnings.filters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for z, rate in [(200.0, 0.001), (0.4, 0.05), (1.0, 1.0)]:
            epsilon_rdp(curve(Gaussian(z, rate)), 1e-5)
            assert epsilon_prv([(z, rate, 2)], 1e-5) is not None
        threads = [threading.Thread(target=epsilon_prv, args=([(2.0, 0.1, n)], 1e-5)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert list(warnings.filters) == before
    assert capfd.readouterr().err == ""
