"""Accuracies estimated from stored neighbours, checked on the stored sweep by leaving runs out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from engine.examples.sweep import requested_points, sweep_example
from engine.results.estimates import OTHER_STEP, Estimate, Outcome, best_step, estimate
from engine.specs.sweep import SweepPoint

RUN: Mapping[str, Any] = {"method": {"name": "udp-fedavg", "noise": 1.0, "server-step": 0.1}, "rounds": 30, "seed": 0}


def outcome(accuracy: float, noise: float, step: float = 0.1, seed: int = 0, **others: Any) -> Outcome:
    return Outcome(run(noise, step, seed, **others), accuracy)


def run(noise: float, step: float = 0.1, seed: int = 0, **others: Any) -> dict[str, Any]:
    return {**RUN, "method": {**RUN["method"], "noise": noise, "server-step": step}, "seed": seed, **others}


@cache
def stored() -> tuple[tuple[SweepPoint, Outcome], ...]:
    """The points with noise of the sweep that ships, and what they reached."""
    example = sweep_example()
    assert example is not None
    accuracies = {result.point.id: result.accuracy for result in example.results}
    noisy = [point for point in requested_points() if point.noise]
    return tuple((point, Outcome(point.spec.canonical(), accuracies[point.id])) for point in noisy)


def left_out(*fields: str) -> Iterator[tuple[Estimate, float]]:
    """The estimate of each stored run from those that differ in one of these fields, and its own accuracy."""
    for point, mine in stored():
        others = [
            other for place, other in stored() if any(getattr(place, name) != getattr(point, name) for name in fields)
        ]
        result = estimate(others, mine.run)
        if result is not None:
            assert not result.exact
            yield result, mine.accuracy


# Measured: the noise (or the step, or the seed) of a stored run is left out, and the run lies within its band so often.
@pytest.mark.parametrize(
    ("fields", "within", "runs"),
    [(("noise",), 96, 96), (("noise", "step"), 178, 192), (("noise", "step", "seed"), 173, 192)],
)
def test_nine_of_ten_left_out_runs_lie_within_the_band(fields: tuple[str, ...], within: int, runs: int) -> None:
    results = list(left_out(*fields))
    assert len(results) == runs
    assert sum(result.low <= accuracy <= result.high for result, accuracy in results) == within


def test_a_noise_between_two_stored_ones_is_interpolated_over_its_log() -> None:
    result = estimate([outcome(0.8, 0.1), outcome(0.4, 10.0)], run(1.0))
    assert result and result.value == pytest.approx(0.6) and result.neighbours == 2
    assert result.low < 0.55 and result.high > 0.65


def test_from_no_noise_to_the_least_the_noise_itself_is_the_scale() -> None:
    result = estimate([outcome(0.8, 0.0), outcome(0.6, 0.1)], run(0.05))
    assert result and result.value == pytest.approx(0.7)


@pytest.mark.parametrize("noise", [0.05, 3.0])
def test_outside_the_stored_noises_there_is_no_estimate(noise: float) -> None:
    assert estimate([outcome(0.8, 0.1), outcome(0.4, 2.0)], run(noise)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"rounds": 31},
        {"clients": 7},
        {"momentum": 0.5},
        {"target-epsilon": 8.0, "view": "server"},
        {"lr": 0.2},
        {"batch": 8},
        {"dataset": "mnist"},
        {"model": {"name": "convnet"}},
    ],
)
def test_a_run_that_differs_in_another_field_is_no_neighbour(other: dict[str, Any]) -> None:
    assert estimate([outcome(0.8, 0.1, **other), outcome(0.4, 2.0)], run(1.0)) is None


def test_the_format_and_the_observer_are_no_settings_of_the_training() -> None:
    others: dict[str, Any] = {"format": 2, "view": "outsider"}
    assert estimate([outcome(0.8, 0.1, **others), outcome(0.4, 2.0, **others)], run(1.0)) is not None


def test_a_run_with_these_very_settings_is_measured() -> None:
    outcomes = [outcome(0.5, 1.0, seed=1), outcome(0.55, 1.0), outcome(0.8, 0.1)]
    assert estimate(outcomes, run(1.0)) == Estimate(0.55, 0.55, 0.55, 1, exact=True)
    other_seeds = estimate(outcomes, run(1.0, seed=2))
    assert other_seeds and not other_seeds.exact and other_seeds.neighbours == 2


def test_a_run_that_is_stored_twice_counts_once() -> None:
    result = estimate([outcome(0.8, 0.1), outcome(0.8, 0.1), outcome(0.4, 10.0)], run(1.0))
    assert result and result.neighbours == 2


def test_the_same_server_step_decides_where_it_is_stored() -> None:
    at_this_step = [outcome(0.8, 0.1), outcome(0.4, 10.0)]
    at_another = [outcome(0.3, 0.1, step=1.0), outcome(0.1, 10.0, step=1.0)]
    assert estimate([*at_this_step, *at_another], run(1.0)) == estimate(at_this_step, run(1.0))


def test_another_server_step_widens_the_band_and_a_distant_one_says_nothing() -> None:
    same = estimate([outcome(0.8, 0.1), outcome(0.4, 10.0)], run(1.0))
    near = estimate([outcome(0.8, 0.1, step=0.3), outcome(0.4, 10.0, step=0.03)], run(1.0))
    assert same and near and near.value == pytest.approx(same.value)
    assert near.high - near.low > same.high - same.low
    assert estimate([outcome(0.8, 0.1, step=1.0), outcome(0.4, 10.0)], run(1.0)) is None


def test_flat_settings_and_nested_ones_are_the_same_run() -> None:
    flat = {"method": "udp-fedavg", "method.noise": 1.0, "method.server-step": 0.1, "rounds": 30, "seed": 0}
    assert estimate([replace(outcome(0.5, 1.0), run=flat)], run(1.0)) == Estimate(0.5, 0.5, 0.5, 1, exact=True)


def test_the_best_server_step_is_that_of_the_nearest_stored_noise() -> None:
    outcomes = [outcome(0.7, 0.1, step=1.0), outcome(0.6, 0.1, step=0.1), outcome(0.3, 2.0, step=0.1)]
    assert best_step(outcomes, run(0.3)) == 1.0
    assert best_step(outcomes, run(math.sqrt(2))) == 0.1
    assert best_step(outcomes, run(0.0)) == 1.0
    assert best_step([], run(1.0)) is None


def test_of_two_server_steps_that_are_about_as_good_the_nearer_one_stays() -> None:
    outcomes = [outcome(0.18, 4.0, step=1.0), outcome(0.175, 4.0, step=0.1), outcome(0.1, 4.0, step=0.03)]
    assert best_step(outcomes, run(4.0, step=0.03)) == 0.1
    assert best_step(outcomes, run(4.0, step=1.0)) == 1.0


def test_more_noise_never_gets_a_larger_step() -> None:
    calm = [outcome(0.4, 1.0, step=0.1), outcome(0.2, 1.0, step=1.0)]
    guessing = [outcome(0.1, 4.0, step=0.1), outcome(0.13, 4.0, step=1.0)]
    assert best_step([*calm, *guessing], run(3.65)) == 0.1


def test_near_guessing_the_step_is_that_of_the_next_larger_noise() -> None:
    """Position ε 3 had a step that made the model diverge: the best of the nearest noise was chance."""
    outcomes = [outcome(0.8, 0.1, step=1.0), outcome(0.2, 2.0, step=0.1), outcome(0.15, 8.0, step=0.01)]
    assert best_step(outcomes, run(2.5)) == 0.01
    assert best_step(outcomes, run(9.0)) == 0.01
    assert best_step([*outcomes, outcome(0.5, 2.0, step=0.3)], run(2.5)) == 0.3


def test_the_band_is_wider_where_the_noises_around_have_other_best_steps() -> None:
    same = [outcome(0.8, 0.1), outcome(0.7, 0.1, step=0.01), outcome(0.4, 10.0), outcome(0.3, 10.0, step=0.01)]
    other = [*same, outcome(0.5, 10.0, step=0.01, seed=1), outcome(0.6, 10.0, step=0.01, seed=2)]
    calm, unsure = estimate(same, run(1.0)), estimate(other, run(1.0))
    assert calm and unsure and calm.value == unsure.value
    assert unsure.high - unsure.low == pytest.approx(calm.high - calm.low + 2 * OTHER_STEP)
