"""The laws of noise: their moments, their tails, and that an upload with noise does not betray its candidates."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from engine.compute import noise
from engine.seeds import Seeds

ZEROS = {"w": torch.zeros(400, 500), "b": torch.zeros(7, dtype=torch.float32)}
UPLOADS = 400
BAND = 0.08  # of an AUC of .5 over 200 against 200 uploads: 2.8 standard deviations

Noised = Callable[[Tensor, torch.Generator], Tensor]  # a candidate and a generator to an upload
Score = Callable[[Tensor, Tensor], float]  # an upload and a candidate to a score: larger fits better


def drawn(*shape: int, std: float = 1.0, seed: int = 0) -> Tensor:
    return noise.gaussian_added({"w": torch.zeros(shape)}, std, Seeds(seed).rng("noise"))["w"]


# --- the Gaussian --------------------------------------------------------------------------------------------


def test_it_has_the_moments_of_a_gaussian() -> None:
    values = drawn(2_000_000, std=2.5).double() / 2.5
    assert abs(float(values.mean())) < 0.003
    assert float(values.var()) == pytest.approx(1, rel=0.005)
    assert float((values**4).mean()) == pytest.approx(3, rel=0.02)


def exceeding(draws: int, sigma: float, seed: int = 0) -> int:
    """How many of so many draws are beyond so many standard deviations."""
    rng = Seeds(seed).rng("noise")
    block = {"w": torch.zeros(10_000_000)}
    return sum(
        int((noise.gaussian_added(block, 1.0, rng)["w"].abs() > sigma).sum()) for _ in range(draws // 10_000_000)
    )


@pytest.mark.slow
def test_a07_noise_has_the_tails_of_a_gaussian() -> None:
    for draws, sigma in ((20_000_000, 4.0), (30_000_000, 5.0)):
        expected = draws * math.erfc(sigma / math.sqrt(2))  # 1,267 and 17
        assert abs(exceeding(draws, sigma) - expected) < 4 * math.sqrt(expected)


@pytest.mark.long
def test_a07_noise_exceeds_the_largest_float32_normal() -> None:
    """`normal_` in float32 never exceeds 5.77 standard deviations. A Gaussian does so about 13 times in 2e9 draws."""
    assert 2 <= exceeding(2_000_000_000, 5.8) <= 30


def old_noise(candidate: Tensor, rng: torch.Generator) -> Tensor:
    """The noise of version 0.4: one float32 normal, added in float32."""
    return candidate + torch.empty_like(candidate).normal_(generator=rng)


def new_noise(candidate: Tensor, rng: torch.Generator) -> Tensor:
    return noise.gaussian_added({"w": candidate}, 1.0, rng)["w"]


def on_the_lattice(upload: Tensor, candidate: Tensor) -> float:
    """How near the large pairs of the noise are to the radii that float32 normals can have.

    torch draws places j and j + 8 of each 16 together. Their radius follows from one of 2^24 uniforms.
    """
    pairs = (upload.double() - candidate.double()).view(-1, 2, 8)
    squares = pairs.square().sum(1)
    uniforms = torch.exp(-squares[squares > 9] / 2) * 2**24
    return -float((uniforms - uniforms.round()).abs().mean())


def on_the_float_grid(upload: Tensor, candidate: Tensor) -> float:
    """The share of coordinates for which a float32 number exists whose sum with the candidate is the upload."""
    middle = upload - candidate
    exists = candidate + middle == upload
    for end in (-math.inf, math.inf):
        neighbour = torch.nextafter(middle, torch.full_like(middle, end))
        exists |= candidate + neighbour == upload
    return float(exists.double().mean())


def auc_of(noised: Noised, score: Score) -> float:
    """How well a score tells which of two known candidates is in an upload. A Gaussian allows .515 here."""
    first, second = 3e-4 * torch.randn(2, 16384, generator=Seeds(5).rng("candidates"))
    differences: tuple[list[float], list[float]] = ([], [])
    for place in range(UPLOADS):
        upload = noised((first, second)[place % 2], Seeds(place).rng("noise"))
        differences[place % 2].append(score(upload, first) - score(upload, second))
    of_first, of_second = (torch.tensor(values, dtype=torch.float64) for values in differences)
    wins = (of_first[:, None] > of_second).double() + 0.5 * (of_first[:, None] == of_second).double()
    return float(wins.mean())


@pytest.mark.parametrize("score", [on_the_lattice, on_the_float_grid], ids=["lattice", "float grid"])
def test_a07_noise_has_no_lattice(score: Score) -> None:
    assert auc_of(new_noise, score) == pytest.approx(0.5, abs=BAND)


@pytest.mark.parametrize("score", [on_the_lattice, on_the_float_grid], ids=["lattice", "float grid"])
def test_a07_the_same_tests_tell_apart_the_candidates_of_the_old_noise(score: Score) -> None:
    assert auc_of(old_noise, score) == 1


def test_it_is_equal_for_any_number_of_threads() -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        first = drawn(300, 400)
        torch.set_num_threads(2)
        second = drawn(300, 400)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(first, second)


def test_it_comes_from_the_given_generator_only() -> None:
    before = torch.random.get_rng_state()
    first = drawn(200, 200, std=2.0)
    assert torch.equal(first, drawn(200, 200, std=2.0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.equal(first, drawn(200, 200, std=2.0, seed=1))


def test_the_noise_of_two_tensors_is_not_correlated() -> None:
    like = {"w": torch.zeros(200, 200), "b": torch.zeros(40_000)}
    noisy = noise.gaussian_added(like, 2.5, Seeds(1).rng("noise"))
    flat = torch.stack([noisy["w"].flatten(), noisy["b"]])
    assert abs(float(torch.corrcoef(flat)[0, 1])) < 0.025


def test_noise_of_size_0_changes_nothing() -> None:
    tensors = {"w": torch.randn(3, 4, generator=Seeds(0).rng("values"))}
    assert torch.equal(noise.gaussian_added(tensors, 0.0, Seeds(1).rng("noise"))["w"], tensors["w"])


# --- the other laws --------------------------------------------------------------------------------------------


def test_laplace_has_its_variance_its_tails_and_no_infinite_draw() -> None:
    noisy = noise.laplace_added(ZEROS, 2.0, Seeds(0).rng("noise"))
    values = noisy["w"].double().flatten()
    assert bool(values.isfinite().all()) and noisy["b"].shape == (7,) and noisy["w"].dtype == torch.float32
    assert float(values.var()) == pytest.approx(2 * 2.0**2, rel=0.03)
    assert abs(float(values.mean())) < 0.03
    for scales in (1, 3, 6):  # P[|x| > t] = exp(-t / b)
        share = float((values.abs() > 2.0 * scales).double().mean())
        assert share == pytest.approx(math.exp(-scales), rel=0.15)


def test_binomial_is_centred_coins() -> None:
    values = noise.binomial_added(ZEROS, 16, Seeds(0).rng("noise"))["w"].double().flatten()
    assert {*values.unique().tolist()} <= {float(value) for value in range(-8, 9)}
    assert float(values.var()) == pytest.approx(16 / 4, rel=0.03) and abs(float(values.mean())) < 0.02


def test_the_same_generator_gives_the_same_noise() -> None:
    for added in (lambda rng: noise.laplace_added(ZEROS, 1.0, rng), lambda rng: noise.binomial_added(ZEROS, 9, rng)):
        first, second = (added(Seeds(3).rng("noise")) for _ in range(2))
        assert all(torch.equal(first[name], second[name]) for name in ZEROS)
