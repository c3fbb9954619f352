"""Arithmetic on weights, clipping that never exceeds its bound, and Gaussian noise."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.compute import weights
from engine.seeds import Seeds

numbers = st.floats(-1e6, 1e6, width=32)


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Tensor]:
    first = draw(st.lists(numbers, min_size=1, max_size=6))
    second = draw(st.lists(numbers, min_size=1, max_size=6))
    return {"a.weight": torch.tensor(first), "b": torch.tensor(second).view(1, -1)}


def random(seed: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    result = {}
    for index, (name, shape) in enumerate(shapes.items()):
        result[name] = torch.randn(shape, generator=Seeds(seed).rng("test", index))
    return result


A = random(1, w=(3, 4), b=(5,))
B = random(2, w=(3, 4), b=(5,))


def test_the_four_operations() -> None:
    torch.testing.assert_close(weights.add(A, B, 0.5)["w"], A["w"] + 0.5 * B["w"])
    torch.testing.assert_close(weights.subtract(A, B)["b"], A["b"] - B["b"])
    torch.testing.assert_close(weights.scale(A, -2.0)["w"], -2 * A["w"])
    assert not any(tensor.any() for tensor in weights.zeros(A).values())
    assert weights.count(A) == 17


def test_the_total_does_not_change_its_terms() -> None:
    before = {name: tensor.clone() for name, tensor in A.items()}
    total = weights.total([A, B, A], [0.5, 2.0, 0.25])
    torch.testing.assert_close(total["w"], 0.75 * A["w"] + 2 * B["w"])
    torch.testing.assert_close(weights.total([A, B])["b"], A["b"] + B["b"])
    assert all(torch.equal(A[name], before[name]) for name in A)
    assert weights.total([]) == {}


def test_the_norm_is_over_all_tensors_together() -> None:
    assert weights.norm({"a": torch.tensor([3.0]), "b": torch.tensor([[0.0, 4.0]])}) == 5.0
    large = {"a": torch.full((1_000_000,), 1e-3)}
    assert weights.norm(large) == pytest.approx(1.0, rel=1e-6)
    # the square of this number overflows in single precision
    assert weights.norm({"a": torch.tensor([1e30, 0.0])}) == pytest.approx(1e30)


@given(tensors(), st.floats(1e-3, 1e3))
def test_a_clipped_norm_never_exceeds_the_bound(update: dict[str, Tensor], bound: float) -> None:
    norm = weights.norm(update)
    clipped = weights.clip(update, bound)
    assert weights.norm(clipped) <= bound
    if norm <= bound:
        assert all(torch.equal(clipped[name], update[name]) for name in update)
    else:
        assert weights.norm(clipped) == pytest.approx(bound, rel=1e-5)
        for name in update:
            torch.testing.assert_close(clipped[name], update[name] * (bound / norm), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_finite_rejects_nan_and_infinity(bad: float) -> None:
    assert weights.finite(A)
    assert not weights.finite({**A, "c": torch.tensor([0.0, bad])})
