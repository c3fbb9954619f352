"""Solved noise keeps its target ε, and impossible requests are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.privacy import solver
from engine.privacy.ledger import Ledger
from engine.privacy.prv import epsilon_prv
from engine.privacy.solver import sampled_gaussian_epsilon, sampled_gaussian_noise, solve
from engine.records import Gaussian, Release

ROWS = json.loads(Path(__file__).with_name("epsilon.json").read_text())["rows"]
steady = settings(derandomize=True, deadline=None, max_examples=30)


def epsilon_of(noise: float, rate: float, steps: int, accountant: str = "prv") -> float:
    epsilon = sampled_gaussian_epsilon(noise, rate, steps, 1e-5)[accountant]
    assert epsilon is not None
    return epsilon


@pytest.mark.parametrize(("target", "expected"), [(8, 1.29), (4, 2.07), (2, 3.62), (1, 6.65)])
def test_noise_for_an_outsider(target, expected):
    noise = sampled_gaussian_noise(target, 0.1, 300, 1e-5)
    assert noise == pytest.approx(expected, abs=0.006)
    assert target * 0.998 < epsilon_of(noise, 0.1, 300) <= target


def test_prv_is_computed_a_few_times_only(monkeypatch):
    calls = []

    def record(history, delta):
        calls.append(history)
        return epsilon_prv(history, delta)

    monkeypatch.setattr(solver, "epsilon_prv", record)
    for target, rate, steps in [(8.0, 0.1, 30), (0.05, 0.1, 10)]:
        calls.clear()
        noise = sampled_gaussian_noise(target, rate, steps, 1e-5)
        assert 1 <= len(calls) <= 10
        assert epsilon_of(noise, rate, steps) <= target
    calls.clear()
    assert epsilon_of(sampled_gaussian_noise(300, 0.1, 300, 1e-5), 0.1, 300, "rdp") <= 300
    assert not calls  # Rényi is the number of record there


@steady
@given(st.floats(0.5, 2), st.floats(1, 1e5), st.floats(1e-3, 1e4))
def test_a_power_law_is_solved_to_four_digits(power, scale, target):
    calls = []

    def epsilon_at(noise, precise):
        calls.append(precise)
        return scale * noise**-power * (0.9 if precise else 1)

    solution = (scale * 0.9 / target) ** (1 / power)
    if not 1e-3 * 1.2 < solution < 1e4 / 1.3:
        return
    noise = solve(epsilon_at, target)
    assert scale * noise**-power * 0.9 <= target
    assert noise <= solution * 1.003
    assert float(f"{noise:.4g}") == noise
    assert sum(calls) <= 10


def test_the_least_noise_of_its_grid_is_found_exactly():
    noise = sampled_gaussian_noise(8, 1.0, 30, 1e-5)
    assert epsilon_of(noise, 1.0, 30) <= 8
    assert epsilon_of(round(noise - 1e-3, 3), 1.0, 30) > 8


def test_the_epsilon_may_come_from_a_ledger():
    def epsilon_at(noise, precise):
        ledger = Ledger(100, 1e-5)
        ledger.add([Release("outsider", Gaussian(noise, 0.1, 300), sampling="poisson")])
        return ledger.answer("outsider", precise=precise).value

    assert solve(epsilon_at, 8.0) == sampled_gaussian_noise(8, 0.1, 300, 1e-5)


def test_without_precise_the_noise_is_slightly_larger_and_prv_is_not_computed():
    calls = []

    def epsilon_at(noise, precise):
        calls.append(precise)
        return 9 / noise if precise else 10 / noise

    quick = solve(epsilon_at, 8.0, precise=False)
    assert not any(calls)
    assert 10 / 8 <= quick <= 10 / 8 * 1.001
    assert solve(epsilon_at, 8.0) < quick


def test_a_target_met_by_the_least_noise():
    assert solve(lambda noise, _: 0.5 / noise, 1e4, low=1e-2) == 1e-2


def test_a_target_that_only_prv_reaches_is_solved():
    noise = solve(lambda noise, precise: 10 / noise if precise else 10 / noise + 1, 0.5)
    assert 20 <= noise <= 30


@pytest.mark.parametrize("epsilon", [None, 7.0])
def test_an_unreachable_target_is_refused(epsilon):
    with pytest.raises(BadInput, match=r"target ε: must be within reach .*, got 2") as refused:
        solve(lambda *_: epsilon, 2.0)
    assert refused.value.remedy


def test_noise_below_the_reach_of_renyi_orders_is_refused():
    with pytest.raises(BadInput, match="within reach"):
        sampled_gaussian_noise(1e-5, 0.1, 3, 1e-5)


@pytest.mark.parametrize(
    "row", ROWS[3:8:2], ids=lambda row: f"{row['noise_multiplier']}-{row['sample_rate']}-{row['steps']}"
)
def test_conformance(row):
    answer = sampled_gaussian_epsilon(row["noise_multiplier"], row["sample_rate"], row["steps"], row["delta"])
    assert answer["prv"] == pytest.approx(row["epsilon_pld"], abs=0.02)
    assert answer["rdp"] == pytest.approx(row["epsilon_rdp"], rel=0.02)


def test_rate_one_is_exact_and_prv_is_skipped_above_its_limit():
    assert sampled_gaussian_epsilon(1 / math.sqrt(10), 1, 30, 1e-5) == {
        "prv": pytest.approx(222.98, abs=0.01),
        "rdp": pytest.approx(231, abs=1),
    }
    assert sampled_gaussian_epsilon(0.03, 0.1, 30, 1e-5)["prv"] is None and epsilon_of(0.03, 0.1, 30, "rdp") > 50


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1, 0, 300), (1, 0.1, 0), (0, 0.1, 0), (0, 1, 0)])
def test_nothing_released_costs_nothing(noise, rate, steps):
    assert sampled_gaussian_epsilon(noise, rate, steps, 1e-5) == {"prv": 0, "rdp": 0}
    assert sampled_gaussian_noise(1, rate, steps, 1e-5) == 0


def test_no_noise_has_no_finite_number():
    assert sampled_gaussian_epsilon(0, 0.1, 1, 1e-5) == {"prv": None, "rdp": None}
    assert sampled_gaussian_epsilon(0, 1, 1, 1e-5) == {"prv": None, "rdp": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("noise", value) for value in (math.nan, math.inf, -1, True, "1")],
        *[("rate", value) for value in (math.nan, math.inf, -0.1, 1.1, True)],
        *[("steps", value) for value in (-1, 1.5, math.inf, True, math.nan)],
        *[("delta", value) for value in (0, 1, -1e-5, math.nan, math.inf, True)],
    ],
)
def test_impossible_settings_are_refused(name, value):
    plan = {"noise": 1.0, "rate": 0.1, "steps": 10, "delta": 1e-5, name: value}
    with pytest.raises(BadInput, match=rf"^epsilon: {name}: must be .*, got "):
        sampled_gaussian_epsilon(**plan)


@pytest.mark.parametrize("target", [0, -1, math.nan, math.inf, True])
def test_impossible_targets_are_refused(target):
    with pytest.raises(BadInput, match=r"^epsilon: target-epsilon: must be .*, got "):
        sampled_gaussian_noise(target, 0.1, 300, 1e-5)
    with pytest.raises(BadInput, match=r"^epsilon: steps: "):
        sampled_gaussian_noise(1, 0.1, -1, 1e-5)
