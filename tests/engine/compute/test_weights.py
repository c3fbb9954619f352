"""Arithmetic on weights: small, exact where it can be, and a clip that never lets more through."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.compute import noise, weights
from engine.seeds import Seeds

numbers = st.floats(-1e6, 1e6, width=32)


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Tensor]:
    first = draw(st.lists(numbers, min_size=1, max_size=6))
    second = draw(st.lists(numbers, min_size=1, max_size=6))
    return {"a.weight": torch.tensor(first), "b": torch.tensor(second).view(1, -1)}


def random(seed: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {
        name: torch.randn(shape, generator=Seeds(seed).rng("test", place))
        for place, (name, shape) in enumerate(shapes.items())
    }


A, B = random(1, w=(3, 4), b=(5,)), random(2, w=(3, 4), b=(5,))


def test_the_four_operations() -> None:
    torch.testing.assert_close(weights.add(A, B, 0.5)["w"], A["w"] + 0.5 * B["w"])
    torch.testing.assert_close(weights.subtract(A, B)["b"], A["b"] - B["b"])
    torch.testing.assert_close(weights.scale(A, -2.0)["w"], -2 * A["w"])
    assert not any(tensor.any() for tensor in weights.zeros(A).values())
    assert weights.count(A) == 17


def test_the_total_is_taken_in_order_and_leaves_its_terms_alone() -> None:
    before = {name: tensor.clone() for name, tensor in A.items()}
    total = weights.total([A, B, A], [0.5, 2.0, 0.25])
    torch.testing.assert_close(total["w"], 0.75 * A["w"] + 2 * B["w"])
    torch.testing.assert_close(weights.total([A, B])["b"], A["b"] + B["b"])
    assert all(torch.equal(A[name], before[name]) for name in A)
    assert weights.total([]) == {}


def test_the_norm_is_one_over_everything() -> None:
    assert weights.norm({"a": torch.tensor([3.0]), "b": torch.tensor([[0.0, 4.0]])}) == 5.0
    many = {"a": torch.full((1_000_000,), 1e-3)}
    assert weights.norm(many) == pytest.approx(1.0, rel=1e-6)
    assert weights.norm({"a": torch.tensor([1e30, 0.0])}) == pytest.approx(
        1e30
    )  # its square is no single-precision number


@given(tensors(), st.floats(1e-3, 1e3))
def test_nothing_longer_than_the_bound_comes_through(given_: dict[str, Tensor], bound: float) -> None:
    length, clipped = weights.norm(given_), weights.clip(given_, bound)
    assert weights.norm(clipped) <= bound
    if length <= bound:
        assert all(torch.equal(clipped[name], given_[name]) for name in given_)
    else:
        assert weights.norm(clipped) == pytest.approx(bound, rel=1e-5)
        for name in given_:
            torch.testing.assert_close(clipped[name], given_[name] * (bound / length), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_found(bad: float) -> None:
    assert weights.finite(A)
    assert not weights.finite({**A, "c": torch.tensor([0.0, bad])})


def test_noise_has_the_std_it_is_asked_for_and_follows_its_generator() -> None:
    like = {"w": torch.zeros(200, 300), "b": torch.zeros(40_000)}
    drawn = noise.gaussian(like, 2.5, Seeds(1).rng("noise"))
    for name, tensor in drawn.items():
        assert tensor.shape == like[name].shape
        assert float(tensor.std()) == pytest.approx(2.5, rel=0.02) and abs(float(tensor.mean())) < 0.06
    again = noise.gaussian_added(like, 2.5, Seeds(1).rng("noise"))
    assert all(torch.equal(drawn[name], again[name]) for name in like)
    flat = torch.cat([drawn["w"].flatten()[:40_000], drawn["b"]]).view(2, -1)
    assert abs(float(torch.corrcoef(flat)[0, 1])) < 0.025  # one tensor's noise is not another's


def test_no_noise_leaves_everything_as_it_is() -> None:
    same = noise.gaussian_added(A, 0.0, Seeds(1).rng("noise"))
    assert all(torch.equal(same[name], A[name]) for name in A)
