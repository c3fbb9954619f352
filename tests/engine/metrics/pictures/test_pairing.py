"""Guesses are assigned to the originals that they fit, and the trivial guess is the mean colour."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor

from engine.errors import BadInput
from engine.metrics.pictures.pairing import matched, trivial
from engine.seeds import Seeds

TRUTH = torch.rand(4, 3, 8, 8, generator=Seeds(0).rng("truth"))


def noisy(pictures: Tensor, deviation: float = 0.1) -> Tensor:
    return pictures + deviation * torch.randn(pictures.shape, generator=Seeds(0).rng("noise"))


def mean_error(guess: Tensor, order: tuple[int, ...]) -> float:
    return float((guess.clamp(0, 1)[list(order)] - TRUTH).square().mean())


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_shuffled_guesses_are_assigned_to_their_originals(order: tuple[int, ...]):
    shuffled = noisy(TRUTH)[list(order)]
    matching = matched(shuffled, TRUTH)
    assert matching.dtype == torch.int64
    assert matching.tolist() == [order.index(place) for place in range(4)]


def test_the_total_distance_is_smallest():
    guess = torch.rand(4, 3, 8, 8, generator=Seeds(1).rng("guess")) * 3 - 1
    best = min(permutations(range(4)), key=lambda order: mean_error(guess, order))
    assert tuple(matched(guess, TRUTH).tolist()) == best


def test_each_guess_is_used_at_most_once():
    """Both guesses are nearest to the same original, so the sum of both distances decides."""
    truth = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    guess = torch.tensor([0.1, 0.3]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    assert matched(guess, truth).tolist() == [0, 1]
    assert matched(guess.flip(0), truth).tolist() == [1, 0]


def test_spare_guesses_are_unused():
    guess = torch.cat([torch.zeros(2, 3, 8, 8), noisy(TRUTH).flip(0)])
    assert matched(guess, TRUTH).tolist() == [5, 4, 3, 2]


def test_originals_without_a_guess_get_the_index_after_the_last():
    guess = noisy(TRUTH)[[2, 0]]
    order = matched(guess, TRUTH)
    assert order.tolist() == [1, 2, 0, 2]
    assert matched(TRUTH[:0], TRUTH).tolist() == [0] * 4
    with pytest.raises(IndexError):  # it never falls back to the guess of another original
        guess[order]
    assert torch.equal(torch.cat([guess, TRUTH[:1]])[order], torch.stack([guess[1], TRUTH[0], guess[0], TRUTH[0]]))


def test_similar_pictures_are_distinguished():
    """They differ by less than the rounding error of a matrix product in single precision."""
    steps = 0.5 + 1e-5 * torch.arange(6).view(6, 1, 1, 1).expand(6, 1, 28, 28)
    assert matched(steps.flip(0), steps).tolist() == [5, 4, 3, 2, 1, 0]


WITH_NAN = torch.full_like(TRUTH, float("nan"))
BAD = [
    (TRUTH[0], TRUTH[0], "must be pictures"),
    (TRUTH[:, :1], TRUTH, "must be pictures"),
    (TRUTH, TRUTH[:0], "must be pictures"),
    (WITH_NAN, TRUTH, "guess: every pixel must be a number"),
    (TRUTH, WITH_NAN, "truth: every pixel must lie between 0 and 1"),
]


@pytest.mark.parametrize(("guess", "truth", "message"), BAD)
def test_anything_but_pictures_is_refused_in_one_sentence(guess: Tensor, truth: Tensor, message: str):
    with pytest.raises(BadInput, match=f"^matching: .*{message}"):
        matched(guess, truth)


def test_the_trivial_guess_is_the_mean_colour():
    guess = trivial(TRUTH)
    assert guess.shape == TRUTH.shape and guess.is_contiguous()
    for picture, flat in zip(TRUTH, guess, strict=True):
        for channel, colour in zip(picture, flat, strict=True):
            assert float(colour.min()) == float(colour.max()) == pytest.approx(float(channel.mean()))


def test_no_other_flat_picture_is_closer():
    error = float((trivial(TRUTH) - TRUTH).square().mean())
    for shift in (-0.05, 0.05):
        assert float((trivial(TRUTH) + shift - TRUTH).square().mean()) > error
