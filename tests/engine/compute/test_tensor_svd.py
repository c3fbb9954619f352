"""T-tSVD: the pinned answers, the book's definition beside it, and the laws that its mathematics promises."""

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
from engine.compute.tensor_svd import FLOOR, RANKS, roughness, soft, spectra, t_tsvd, thinned
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
    """The singular values of all K frequencies, straight from the definition."""
    matrices = stack.double().reshape(len(stack), 1 if stack.dim() == 2 else stack.shape[1], -1)
    values: Tensor = torch.linalg.svdvals(torch.fft.fft(matrices, dim=0))
    return values


def by_the_book(stack: Tensor, threshold: float) -> Tensor:
    return torch.from_numpy(slice_by_slice({"layer": stack}, threshold)["layer"])


def apart(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).norm() / other.double().norm())


# --- the definition ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("row", PINNED["rows"], ids=lambda row: f"seed {row['seed']}")
def test_the_pinned_answers(row: dict[str, Any], dtype: torch.dtype, device: str) -> None:
    pinned = np.random.RandomState(row["seed"]).standard_normal(row["shape"])  # (in, out, clients)
    stack = torch.from_numpy(pinned).permute(2, 1, 0).to(device, dtype)
    found = t_tsvd(stack, row["threshold"])
    assert found.dtype == dtype and found.shape == stack.shape and found.device == stack.device
    answer = found.cpu().permute(2, 1, 0).double()
    assert answer.flatten()[:6].tolist() == pytest.approx(row["first"], abs=PINNED["tolerance"])
    assert float(answer.sum()) == pytest.approx(row["output_sum"], abs=PINNED["tolerance"])
    assert float(answer.norm()) == pytest.approx(row["output_norm"], abs=PINNED["tolerance"])
    assert (all_values(found.cpu()) > 1e-4).sum(1).tolist() == row["slice_ranks"]


@given(stacks(), st.sampled_from((1e-9, 1e-3, 0.05, 0.3, 0.9)), st.sampled_from((torch.float32, torch.float64)))
def test_it_is_what_the_book_says(stack: Tensor, share: float, dtype: torch.dtype) -> None:
    stack, threshold = stack.to(dtype), thresholds(stack, share)
    room = 1e-5 if dtype == torch.float32 else 1e-12
    found, expected = t_tsvd(stack, threshold), by_the_book(stack, threshold)
    assert found.dtype == dtype and found.shape == stack.shape
    assert float((found - expected).norm()) <= room * float(stack.norm())


@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_what_lies_behind_out_is_one_side_of_a_matrix(threshold: float) -> None:
    stack = drawn(5, 4, 3, 2, 2)
    assert torch.equal(t_tsvd(stack, threshold).flatten(2), t_tsvd(stack.flatten(2), threshold))
    bias = drawn(5, 6)
    assert torch.equal(t_tsvd(bias, threshold), t_tsvd(bias[:, None], threshold)[:, 0])


@given(stacks())
def test_the_spectra_are_the_singular_values_of_each_frequency_once(stack: Tensor) -> None:
    found, every = spectra(stack), all_values(stack)
    assert found.dtype == stack.dtype and len(found) == len(stack) // 2 + 1
    torch.testing.assert_close(found, every[: len(found)], rtol=0, atol=1e-12 * float(every.max()))
    mean = stack.mean(0).reshape(1 if stack.dim() == 2 else stack.shape[1], -1)
    torch.testing.assert_close(found[0], len(stack) * torch.linalg.svdvals(mean), rtol=1e-9, atol=0)


@pytest.mark.parametrize("many", [1, 2, RANKS - 1, RANKS, RANKS + 1, 512, 4096])
def test_a_spectrum_is_thinned_between_its_ends(many: int) -> None:
    values = torch.logspace(0, -3, many).repeat(3, 1) * torch.tensor([[1.0], [2.0], [0.5]])
    ranks, kept = thinned(values)
    assert ranks[0] == 1 and ranks[-1] == many and list(ranks) == sorted(set(ranks))
    assert len(ranks) == many if many <= RANKS else RANKS // 2 < len(ranks) <= RANKS
    assert torch.equal(kept, values[:, [rank - 1 for rank in ranks]])


def test_what_single_precision_cannot_know_is_told_as_its_floor() -> None:
    values = torch.tensor([[1.0, 1e-5, 0.0], [4.0, 1e-7, 1e-9]])
    assert torch.equal(thinned(values)[1], values.clamp(min=4 * FLOOR))
    assert not thinned(torch.zeros(2, 3))[1].any()


@given(stacks())
def test_the_roughness_is_the_mean_squared_distance_from_the_others(stack: Tensor) -> None:
    layer, many = stack.reshape(len(stack), stack.shape[1], -1), len(stack)
    squares = (layer[:, None] - layer).square().sum(3)  # (clients, clients, rows)
    found = roughness(layer)
    torch.testing.assert_close(found, squares.sum(1).mT / max(many - 1, 1), rtol=1e-9, atol=0)
    assert found.shape == (stack.shape[1], many) and (many > 1 or not found.any())


# --- its laws ----------------------------------------------------------------------------------------------


@given(stacks())
def test_a_threshold_of_0_changes_nothing(stack: Tensor) -> None:
    found = t_tsvd(stack, 0.0)
    assert torch.equal(found, stack) and found.data_ptr() != stack.data_ptr()


@given(stacks(), st.floats(1e-6, 1.2))
def test_every_singular_value_falls_by_the_threshold_and_none_rises(stack: Tensor, share: float) -> None:
    threshold = thresholds(stack, share)
    before, after = all_values(stack), all_values(t_tsvd(stack, threshold))
    room = 1e-12 * float(before.max())
    assert bool((after <= before + room).all())
    torch.testing.assert_close(after, (before - threshold).clamp(min=0), rtol=0, atol=room)


@given(stacks(), st.integers(1, 6), st.floats(0.01, 0.9))
def test_shifting_the_clients_in_a_circle_shifts_the_answer(stack: Tensor, steps: int, share: float) -> None:
    threshold = thresholds(stack, share)
    shifted, found = t_tsvd(stack.roll(steps, 0), threshold), t_tsvd(stack, threshold)
    torch.testing.assert_close(shifted, found.roll(steps, 0), rtol=0, atol=1e-12 * float(stack.abs().max()))


def test_any_other_order_of_the_clients_gives_another_answer() -> None:
    stack, order = drawn(5, 6, 4), [1, 0, 2, 3, 4]
    threshold = thresholds(stack, 0.3)
    assert apart(t_tsvd(stack[order], threshold), t_tsvd(stack, threshold)[order]) > 1e-3


@pytest.mark.parametrize("shape", LAYERS)
def test_one_client_alone_is_a_matrix_softened(shape: tuple[int, ...]) -> None:
    tensor = drawn(*shape)
    left, values, right = torch.linalg.svd(tensor.reshape(1 if len(shape) == 1 else shape[0], -1), full_matrices=False)
    threshold = float(values.max()) / 3
    expected = ((left * (values - threshold).clamp(min=0)) @ right).view(shape)
    assert apart(t_tsvd(tensor[None], threshold)[0], expected) < 1e-12
    assert torch.equal(soft(tensor, threshold), t_tsvd(tensor[None], threshold)[0])


@given(stacks(), st.floats(0.01, 0.9))
def test_the_mean_of_the_answer_is_the_softened_mean(stack: Tensor, share: float) -> None:
    threshold = thresholds(stack, share)
    expected = soft(stack.mean(0), threshold / len(stack))
    room = 1e-12 * float(stack.abs().max())
    torch.testing.assert_close(t_tsvd(stack, threshold).mean(0), expected, rtol=0, atol=room)


@pytest.mark.parametrize("shape", LAYERS)
def test_above_all_that_tells_clients_apart_each_gets_the_truncated_mean(shape: tuple[int, ...]) -> None:
    """Proposition 3.2: only frequency 0 outlives the threshold, and it is the same for every client."""
    stack = drawn(*shape) + 0.05 * drawn(6, *shape, seed=1)
    shared, differences = spectra(stack)[0], spectra(stack)[1:]
    threshold = 1.01 * float(differences.max())
    assert threshold < float(shared.max())
    mean = soft(stack.mean(0), threshold / 6)
    assert mean.any()
    for one in t_tsvd(stack, threshold):
        torch.testing.assert_close(one, mean, rtol=0, atol=1e-12)


@given(stacks())
def test_the_largest_singular_value_is_the_threshold_that_erases(stack: Tensor) -> None:
    assert not t_tsvd(stack, thresholds(stack, 1.000001)).any()
    assert not t_tsvd(stack, float("inf")).any()
    assert t_tsvd(stack, thresholds(stack, 0.999)).any()


# --- numbers of finite length ------------------------------------------------------------------------------


@pytest.mark.slow
def test_single_precision_is_enough_where_the_matrix_is_ill_conditioned(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = ill_conditioned()
    values = spectra(stack.double())
    assert float((values[:, 0] / values[:, -1]).min()) == pytest.approx(CONDITION, rel=0.2)
    for threshold in (1e-7, 1e-4, 0.019):
        expected = t_tsvd(stack.double(), threshold)
        assert apart(expected, by_the_book(stack, threshold)) < 1e-12
        assert apart(t_tsvd(stack, threshold), expected) < 3e-6
    monkeypatch.setattr(tensor_svd, "REACH", 0.0)  # squares alone bury what is small
    assert apart(t_tsvd(stack, 1e-4), t_tsvd(stack.double(), 1e-4)) > 1e-5


@pytest.mark.parametrize("shape", [(12, 30, 20), (5, 64, 40), (7, 33)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_number_of_threads_gives_the_same_bits(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    stack = drawn(*shape, dtype=dtype)
    threshold = thresholds(stack, 0.02)
    alone, values = t_tsvd(stack, threshold), spectra(stack)
    for threads in (1, 2, 4):
        with ThreadTeam(threads) as team:
            assert all(torch.equal(t_tsvd(stack, threshold, team), alone) for _ in range(3))
            assert torch.equal(spectra(stack, team), values)


@pytest.mark.parametrize("shape", LAYERS)
def test_where_nothing_is_nothing_remains(shape: tuple[int, ...]) -> None:
    stack = torch.zeros(4, *shape)
    assert torch.equal(t_tsvd(stack, 0.1), stack) and not spectra(stack).any()
    stack[2] = 1.0  # of rank one, at every frequency
    assert apart(t_tsvd(stack, 0.1), by_the_book(stack, 0.1)) < 1e-5
    same = drawn(*shape, dtype=torch.float32).expand(4, *shape)  # frequency 0 alone
    assert apart(t_tsvd(same, 0.1), by_the_book(same, 0.1)) < 1e-5


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_very_large_numbers_keep_their_digits(scale: float) -> None:
    stack = drawn(4, 6, 5, dtype=torch.float32)
    assert apart(t_tsvd(stack * scale, scale) / scale, t_tsvd(stack, 1.0)) < 1e-5
    assert torch.isfinite(t_tsvd(stack * 1e-43, 1e-44)).all()  # below what single precision can divide by


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("ask", [lambda stack: t_tsvd(stack, 0.1), spectra])
def test_numbers_that_are_none_are_refused(wrong: float, ask: Any) -> None:
    stack = drawn(4, 3, 2, dtype=torch.float32)
    stack[1:, 2, 1] = wrong  # three times 3e38 is beyond single precision
    with pytest.raises(RunFailed, match="finite") as refused:
        ask(stack)
    assert refused.value.remedy


@pytest.mark.parametrize("threshold", [-0.1, float("nan")])
def test_a_threshold_is_not_negative(threshold: float) -> None:
    with pytest.raises(BadInput, match="threshold must be 0 or more"):
        t_tsvd(drawn(2, 3, 2), threshold)


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 5))
def test_exactly_deficient_ranks_are_no_trouble(clients: int, rank: int) -> None:
    stack = drawn(clients, 8, rank, dtype=torch.float32) @ drawn(clients, rank, 6, seed=1, dtype=torch.float32)
    for share in (1e-12, 1e-6, 0.1):
        threshold = thresholds(stack, share)
        assert apart(t_tsvd(stack, threshold), by_the_book(stack, threshold)) < 1e-5
