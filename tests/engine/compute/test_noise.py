"""The laws of noise beside the Gaussian: their moments, their tails, and no infinite draw."""

from __future__ import annotations

import math

import pytest
import torch

from engine.compute import noise
from engine.seeds import Seeds

LIKE = {"w": torch.zeros(400, 500), "b": torch.zeros(7, dtype=torch.float32)}


def test_laplace_has_its_variance_its_tails_and_no_infinite_draw() -> None:
    drawn = noise.laplace(LIKE, 2.0, Seeds(0).rng("noise"))
    values = drawn["w"].double().flatten()
    assert bool(values.isfinite().all()) and drawn["b"].shape == (7,) and drawn["w"].dtype == torch.float32
    assert float(values.var()) == pytest.approx(2 * 2.0**2, rel=0.03)
    assert abs(float(values.mean())) < 0.03
    for scales in (1, 3, 6):  # P[|x| > t] = exp(-t / b)
        share = float((values.abs() > 2.0 * scales).double().mean())
        assert share == pytest.approx(math.exp(-scales), rel=0.15)


def test_binomial_is_centred_coins() -> None:
    drawn = noise.binomial(LIKE, 16, Seeds(0).rng("noise"))["w"].double().flatten()
    assert {*drawn.unique().tolist()} <= {float(value) for value in range(-8, 9)}
    assert float(drawn.var()) == pytest.approx(16 / 4, rel=0.03) and abs(float(drawn.mean())) < 0.02


def test_the_same_generator_gives_the_same_noise() -> None:
    for draw in (lambda rng: noise.laplace(LIKE, 1.0, rng), lambda rng: noise.binomial(LIKE, 9, rng)):
        first, second = (draw(Seeds(3).rng("noise")) for _ in range(2))
        assert all(torch.equal(first[name], second[name]) for name in LIKE)
