"""The matching test finds the pictures of an upload in guesses that show none, and finds nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.datasets import DATASETS
from engine.leakage.matching import correlation, matching_test
from engine.seeds import Seeds

Guesses = Callable[[Tensor, Tensor, torch.Generator], Tensor]
COUNT = 40  # pictures of the upload
SEEDS = 100
DATA = DATASETS.make("fashion-mnist").load()
HALF = len(DATA.test_y) // 2


def p_values(guesses_of: Guesses) -> list[float]:
    """p for 100 uploads. `guesses_of` receives the pictures of the upload, those of another, and random numbers."""
    values = []
    for seed in range(SEEDS):
        rng = torch.Generator().manual_seed(seed)
        places = torch.randperm(len(DATA.train_y), generator=rng, device="cpu")
        inside, other = places[:COUNT], places[COUNT : 2 * COUNT]
        guesses = guesses_of(DATA.train_x[inside], DATA.train_x[other], rng)
        members = (DATA.train_x[inside], DATA.train_y[inside])
        others = (DATA.test_x[:HALF], DATA.test_y[:HALF])
        values.append(matching_test(guesses, DATA.train_y[inside], members, others, Seeds(seed))["p"])
    return values


def noise(inside: Tensor, other: Tensor, rng: torch.Generator) -> Tensor:
    del other
    return torch.rand(inside.shape, generator=rng, device="cpu")


def another_upload(inside: Tensor, other: Tensor, rng: torch.Generator) -> Tensor:
    del inside, rng
    return other


@pytest.mark.parametrize("guesses_of", [noise, another_upload])
def test_guesses_that_know_nothing_have_uniform_p(
    guesses_of: Callable[[Tensor, Tensor, torch.Generator], Tensor],
) -> None:
    values = np.sort(p_values(guesses_of))
    expected = np.arange(1, SEEDS + 1) / SEEDS
    assert float(np.abs(values - expected).max()) < 0.163  # Kolmogorov and Smirnov at 1 %
    assert (values < 0.01).sum() <= 4


def test_pictures_that_nobody_recognises_tell_whose_they_are() -> None:
    def faint(inside: Tensor, other: Tensor, rng: torch.Generator) -> Tensor:
        del other
        return 0.4 * inside + torch.randn(inside.shape, generator=rng, device="cpu")

    values = p_values(faint)
    assert np.mean(np.array(values) < 0.01) > 0.9


def test_a_guess_of_one_colour_correlates_with_nothing() -> None:
    flat = torch.full((1, 1, 4, 4), 0.5, device="cpu")
    picture = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0), device="cpu")
    assert float(correlation(flat, picture)) == 0 and float(correlation(picture, picture)) == pytest.approx(1)


def test_a_class_without_other_pictures_has_no_vote() -> None:
    pictures = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0), device="cpu")
    labels = torch.tensor([0, 0], device="cpu")
    others = (pictures, torch.tensor([1, 1], device="cpu"))
    assert matching_test(pictures, labels, (pictures, labels), others, Seeds(0)) == {}
