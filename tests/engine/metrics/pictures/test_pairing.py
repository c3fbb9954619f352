"""Guesses are put beside the pictures they fit, and somebody who knows nothing has a guess, too."""

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
def test_shuffled_guesses_find_their_pictures(order: tuple[int, ...]):
    shuffled = noisy(TRUTH)[list(order)]
    found = matched(shuffled, TRUTH)
    assert found.dtype == torch.int64
    assert found.tolist() == [order.index(place) for place in range(4)]


def test_all_together_are_nearest():
    guess = torch.rand(4, 3, 8, 8, generator=Seeds(1).rng("guess")) * 3 - 1
    best = min(permutations(range(4)), key=lambda order: mean_error(guess, order))
    assert tuple(matched(guess, TRUTH).tolist()) == best


def test_one_guess_is_given_to_one_picture():
    """Both guesses are nearest to the same picture: the pair decides."""
    truth = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    guess = torch.tensor([0.1, 0.3]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    assert matched(guess, truth).tolist() == [0, 1]
    assert matched(guess.flip(0), truth).tolist() == [1, 0]


def test_spare_guesses_are_left_over():
    guess = torch.cat([torch.zeros(2, 3, 8, 8), noisy(TRUTH).flip(0)])
    assert matched(guess, TRUTH).tolist() == [5, 4, 3, 2]


def test_pictures_may_go_without_a_guess():
    guess = noisy(TRUTH)[[2, 0]]
    order = matched(guess, TRUTH)
    assert order.tolist() == [1, 2, 0, 2]
    assert matched(TRUTH[:0], TRUTH).tolist() == [0] * 4
    with pytest.raises(IndexError):  # not another picture's guess in its place
        guess[order]
    assert torch.equal(torch.cat([guess, TRUTH[:1]])[order], torch.stack([guess[1], TRUTH[0], guess[0], TRUTH[0]]))


def test_near_pictures_are_told_apart():
    """Where they differ by less than a product in single precision would keep."""
    steps = 0.5 + 1e-5 * torch.arange(6).view(6, 1, 1, 1).expand(6, 1, 28, 28)
    assert matched(steps.flip(0), steps).tolist() == [5, 4, 3, 2, 1, 0]


UNKNOWN = torch.full_like(TRUTH, float("nan"))
BAD = [
    (TRUTH[0], TRUTH[0], "must be pictures"),
    (TRUTH[:, :1], TRUTH, "must be pictures"),
    (TRUTH, TRUTH[:0], "must be pictures"),
    (UNKNOWN, TRUTH, "guess: every pixel must be a number"),
    (TRUTH, UNKNOWN, "truth: every pixel must lie between 0 and 1"),
]


@pytest.mark.parametrize(("guess", "truth", "words"), BAD)
def test_other_things_are_refused_in_a_sentence(guess: Tensor, truth: Tensor, words: str):
    with pytest.raises(BadInput, match=f"^matching: .*{words}"):
        matched(guess, truth)


def test_the_trivial_guess_is_the_mean_colour():
    guess = trivial(TRUTH)
    assert guess.shape == TRUTH.shape and guess.is_contiguous()
    for picture, plain in zip(TRUTH, guess, strict=True):
        for channel, colour in zip(picture, plain, strict=True):
            assert float(colour.min()) == float(colour.max()) == pytest.approx(float(channel.mean()))


def test_no_other_flat_picture_is_nearer():
    own = float((trivial(TRUTH) - TRUTH).square().mean())
    for shift in (-0.05, 0.05):
        assert float((trivial(TRUTH) + shift - TRUTH).square().mean()) > own
