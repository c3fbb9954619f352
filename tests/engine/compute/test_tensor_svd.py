"""T-tSVD: stored results, a direct implementation of its definition, and its mathematical properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.bench.t_tsvd import CONDITION, ill_conditioned, slice_by_slice
from engine.compute import tensor_svd
from engine.compute.tensor_svd import FLOOR, RANKS, roughness, soft_threshold, spectra, t_tsvd, thinned
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, RunFailed
from engine.seeds import Seeds

PINNED = json.loads(Path(__file__).with_name("t_tsvd.json").read_text(encoding="utf-8"))
CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA card on this machine")
)
LAYERS = ((5,), (1, 1), (3, 7), (7, 3), (4, 4), (4, 3, 2, 2))  # a bias, matrices, a convolution


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=Seeds(seed).rng("test"), dtype=dtype)


@st.composite
def stacks(draw: st.DrawFn) -> Tensor:
    shape = draw(st.integers(1, 7)), *draw(st.sampled_from(LAYERS))
    scale = draw(st.sampled_from((1e-12, 1e-3, 1.0, 1e3)))
    return scale * drawn(*shape, seed=draw(st.integers(0, 99)))


def thresholds(stack: Tensor, share: float) -> float:
    return share * float(spectra(stack).max())


def all_values(stack: Tensor) -> Tensor:
    """The singular values of all K frequencies, by the definition."""
    matrices = stack.double().reshape(len(stack), 1 if stack.dim() == 2 else stack.shape[1], -1)
    values: Tensor = torch.linalg.svdvals(torch.fft.fft(matrices, dim=0))
    return values


def by_definition(stack: Tensor, threshold: float) -> Tensor:
    return torch.from_numpy(slice_by_slice({"layer": stack}, threshold)["layer"])


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual.double() - expected.double()).norm() / expected.double().norm())


# --- the definition ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("row", PINNED["rows"], ids=lambda row: f"seed {row['seed']}")
def test_the_stored_results(row: dict[str, Any], dtype: torch.dtype, device: str) -> None:
    values = np.random.RandomState(row["seed"]).standard_normal(row["shape"])  # (in, out, clients)
    stack = torch.from_numpy(values).permute(2, 1, 0).to(device, dtype)
    result = t_tsvd(stack, row["threshold"])
    assert result.dtype == dtype and result.shape == stack.shape and result.device == stack.device
    slices = result.cpu().permute(2, 1, 0).double()
    assert slices.flatten()[:6].tolist() == pytest.approx(row["first"], abs=PINNED["tolerance"])
    assert float(slices.sum()) == pytest.approx(row["output_sum"], abs=PINNED["tolerance"])
    assert float(slices.norm()) == pytest.approx(row["output_norm"], abs=PINNED["tolerance"])
    assert (all_values(result.cpu()) > 1e-4).sum(1).tolist() == row["slice_ranks"]


@given(stacks(), st.sampled_from((1e-9, 1e-3, 0.05, 0.3, 0.9)), st.sampled_from((torch.float32, torch.float64)))
def test_the_result_is_that_of_the_definition(stack: Tensor, share: float, dtype: torch.dtype) -> None:
    stack = stack.to(dtype)
    threshold = thresholds(stack, share)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    result = t_tsvd(stack, threshold)
    expected = by_definition(stack, threshold)
    assert result.dtype == dtype and result.shape == stack.shape
    assert float((result - expected).norm()) <= tolerance * float(stack.norm())


@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_all_axes_after_out_form_one_side_of_a_matrix(threshold: float) -> None:
    stack = drawn(5, 4, 3, 2, 2)
    assert torch.equal(t_tsvd(stack, threshold).flatten(2), t_tsvd(stack.flatten(2), threshold))
    bias = drawn(5, 6)
    assert torch.equal(t_tsvd(bias, threshold), t_tsvd(bias[:, None], threshold)[:, 0])


@given(stacks())
def test_the_spectra_are_the_singular_values_of_each_frequency_once(stack: Tensor) -> None:
    result = spectra(stack)
    expected = all_values(stack)
    assert result.dtype == stack.dtype and len(result) == len(stack) // 2 + 1
    torch.testing.assert_close(result, expected[: len(result)], rtol=0, atol=1e-12 * float(expected.max()))
    mean = stack.mean(0).reshape(1 if stack.dim() == 2 else stack.shape[1], -1)
    torch.testing.assert_close(result[0], len(stack) * torch.linalg.svdvals(mean), rtol=1e-9, atol=0)


@pytest.mark.parametrize("count", [1, 2, RANKS - 1, RANKS, RANKS + 1, 512, 4096])
def test_a_spectrum_is_thinned_between_its_ends(count: int) -> None:
    values = torch.logspace(0, -3, count).repeat(3, 1) * torch.tensor([[1.0], [2.0], [0.5]])
    ranks, kept = thinned(values)
    assert ranks[0] == 1 and ranks[-1] == count and list(ranks) == sorted(set(ranks))
    assert len(ranks) == count if count <= RANKS else RANKS // 2 < len(ranks) <= RANKS
    assert torch.equal(kept, values[:, [rank - 1 for rank in ranks]])


def test_values_below_single_precision_are_reported_as_the_floor() -> None:
    values = torch.tensor([[1.0, 1e-5, 0.0], [4.0, 1e-7, 1e-9]])
    assert torch.equal(thinned(values)[1], values.clamp(min=4 * FLOOR))
    assert not thinned(torch.zeros(2, 3))[1].any()


@given(stacks())
def test_the_roughness_is_the_mean_squared_distance_from_the_others(stack: Tensor) -> None:
    clients = len(stack)
    layer = stack.reshape(clients, stack.shape[1], -1)
    squares = (layer[:, None] - layer).square().sum(3)  # (clients, clients, rows)
    result = roughness(layer)
    torch.testing.assert_close(result, squares.sum(1).mT / max(clients - 1, 1), rtol=1e-9, atol=0)
    assert result.shape == (stack.shape[1], clients) and (clients > 1 or not result.any())


# --- mathematical properties -------------------------------------------------------------------------------


@given(stacks())
def test_a_threshold_of_0_changes_nothing(stack: Tensor) -> None:
    result = t_tsvd(stack, 0.0)
    assert torch.equal(result, stack) and result.data_ptr() != stack.data_ptr()


@given(stacks(), st.floats(1e-6, 1.2))
def test_every_singular_value_falls_by_the_threshold_and_none_rises(stack: Tensor, share: float) -> None:
    threshold = thresholds(stack, share)
    before = all_values(stack)
    after = all_values(t_tsvd(stack, threshold))
    tolerance = 1e-12 * float(before.max())
    assert bool((after <= before + tolerance).all())
    torch.testing.assert_close(after, (before - threshold).clamp(min=0), rtol=0, atol=tolerance)


@given(stacks(), st.integers(1, 6), st.floats(0.01, 0.9))
def test_a_cyclic_shift_of_the_clients_shifts_the_result(stack: Tensor, steps: int, share: float) -> None:
    threshold = thresholds(stack, share)
    shifted = t_tsvd(stack.roll(steps, 0), threshold)
    result = t_tsvd(stack, threshold)
    torch.testing.assert_close(shifted, result.roll(steps, 0), rtol=0, atol=1e-12 * float(stack.abs().max()))


def test_any_other_order_of_the_clients_changes_the_result() -> None:
    stack = drawn(5, 6, 4)
    order = [1, 0, 2, 3, 4]
    threshold = thresholds(stack, 0.3)
    assert relative_error(t_tsvd(stack[order], threshold), t_tsvd(stack, threshold)[order]) > 1e-3


@pytest.mark.parametrize("shape", LAYERS)
def test_a_single_client_is_a_matrix_with_a_soft_threshold(shape: tuple[int, ...]) -> None:
    tensor = drawn(*shape)
    left, values, right = torch.linalg.svd(tensor.reshape(1 if len(shape) == 1 else shape[0], -1), full_matrices=False)
    threshold = float(values.max()) / 3
    expected = ((left * (values - threshold).clamp(min=0)) @ right).view(shape)
    assert relative_error(t_tsvd(tensor[None], threshold)[0], expected) < 1e-12
    assert torch.equal(soft_threshold(tensor, threshold), t_tsvd(tensor[None], threshold)[0])


@given(stacks(), st.floats(0.01, 0.9))
def test_the_mean_of_the_result_is_the_mean_with_a_soft_threshold(stack: Tensor, share: float) -> None:
    threshold = thresholds(stack, share)
    expected = soft_threshold(stack.mean(0), threshold / len(stack))
    tolerance = 1e-12 * float(stack.abs().max())
    torch.testing.assert_close(t_tsvd(stack, threshold).mean(0), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("shape", LAYERS)
def test_above_all_differences_every_client_gets_the_truncated_mean(shape: tuple[int, ...]) -> None:
    """Proposition 3.2: only frequency 0 exceeds the threshold, and it is the same for every client."""
    stack = drawn(*shape) + 0.05 * drawn(6, *shape, seed=1)
    shared = spectra(stack)[0]
    differences = spectra(stack)[1:]
    threshold = 1.01 * float(differences.max())
    assert threshold < float(shared.max())
    mean = soft_threshold(stack.mean(0), threshold / 6)
    assert mean.any()
    for client in t_tsvd(stack, threshold):
        torch.testing.assert_close(client, mean, rtol=0, atol=1e-12)


@given(stacks())
def test_a_threshold_above_the_largest_singular_value_erases_the_layer(stack: Tensor) -> None:
    assert not t_tsvd(stack, thresholds(stack, 1.000001)).any()
    assert not t_tsvd(stack, float("inf")).any()
    assert t_tsvd(stack, thresholds(stack, 0.999)).any()


# --- precision ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_single_precision_is_enough_where_the_matrix_is_ill_conditioned(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = ill_conditioned()
    values = spectra(stack.double())
    assert float((values[:, 0] / values[:, -1]).min()) == pytest.approx(CONDITION, rel=0.2)
    for threshold in (1e-7, 1e-4, 0.019):
        expected = t_tsvd(stack.double(), threshold)
        assert relative_error(expected, by_definition(stack, threshold)) < 1e-12
        assert relative_error(t_tsvd(stack, threshold), expected) < 3e-6
    monkeypatch.setattr(tensor_svd, "REACH", 0.0)  # the Gram matrix alone loses small values
    assert relative_error(t_tsvd(stack, 1e-4), t_tsvd(stack.double(), 1e-4)) > 1e-5


@pytest.mark.parametrize("shape", [(12, 30, 20), (5, 64, 40), (7, 33)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_number_of_threads_gives_the_same_bits(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    stack = drawn(*shape, dtype=dtype)
    threshold = thresholds(stack, 0.02)
    expected = t_tsvd(stack, threshold)
    values = spectra(stack)
    for threads in (1, 2, 4):
        with ThreadTeam(threads) as team:
            assert all(torch.equal(t_tsvd(stack, threshold, team), expected) for _ in range(3))
            assert torch.equal(spectra(stack, team), values)


@pytest.mark.parametrize("shape", LAYERS)
def test_zero_and_rank_one_stacks(shape: tuple[int, ...]) -> None:
    stack = torch.zeros(4, *shape)
    assert torch.equal(t_tsvd(stack, 0.1), stack) and not spectra(stack).any()
    stack[2] = 1.0  # of rank one, at every frequency
    assert relative_error(t_tsvd(stack, 0.1), by_definition(stack, 0.1)) < 1e-5
    equal = drawn(*shape, dtype=torch.float32).expand(4, *shape)  # frequency 0 alone
    assert relative_error(t_tsvd(equal, 0.1), by_definition(equal, 0.1)) < 1e-5


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_very_large_numbers_keep_their_digits(scale: float) -> None:
    stack = drawn(4, 6, 5, dtype=torch.float32)
    assert relative_error(t_tsvd(stack * scale, scale) / scale, t_tsvd(stack, 1.0)) < 1e-5
    assert torch.isfinite(
        t_tsvd(stack * 1e-43, 1e-44)
    ).all()  # smaller than the smallest normal number in single precision


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("function", [lambda stack: t_tsvd(stack, 0.1), spectra])
def test_values_that_are_not_finite_are_refused(wrong: float, function: Any) -> None:
    stack = drawn(4, 3, 2, dtype=torch.float32)
    stack[1:, 2, 1] = wrong  # three times 3e38 is beyond single precision
    with pytest.raises(RunFailed, match="finite") as refused:
        function(stack)
    assert refused.value.remedy


@pytest.mark.parametrize("threshold", [-0.1, float("nan")])
def test_a_threshold_is_not_negative(threshold: float) -> None:
    with pytest.raises(BadInput, match="threshold must be 0 or more"):
        t_tsvd(drawn(2, 3, 2), threshold)


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 5))
def test_a_rank_deficient_stack_has_no_error(clients: int, rank: int) -> None:
    stack = drawn(clients, 8, rank, dtype=torch.float32) @ drawn(clients, rank, 6, seed=1, dtype=torch.float32)
    for share in (1e-12, 1e-6, 0.1):
        threshold = thresholds(stack, share)
        assert relative_error(t_tsvd(stack, threshold), by_definition(stack, threshold)) < 1e-5
