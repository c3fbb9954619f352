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

COUNT = 40  # pictures of the upload
SEEDS = 100
Records = tuple[Tensor, Tensor]  # pictures and their classes
Guesses = Callable[[Records, Records, torch.Generator], Records]


def p_values(name: str, guesses_of: Guesses, seeds: int = SEEDS) -> list[float]:
    """p for several uploads. `guesses_of` receives the upload, that of another client, and random numbers."""
    data = DATASETS.make(name).load()
    values = []
    for seed in range(seeds):
        rng = torch.Generator().manual_seed(seed)
        places = torch.randperm(len(data.train_y), generator=rng, device="cpu")
        inside, other, rest = places[:COUNT], places[COUNT : 2 * COUNT], places[2 * COUNT :]
        members = data.train_x[inside], data.train_y[inside]
        strangers = data.train_x[other], data.train_y[other]
        guesses, labels = guesses_of(members, strangers, rng)
        values.append(
            matching_test(guesses, labels, members, (data.train_x[rest], data.train_y[rest]), Seeds(seed))["p"]
        )
    return values


def noise(inside: Records, other: Records, rng: torch.Generator) -> Records:
    del other
    return torch.rand(inside[0].shape, generator=rng, device="cpu"), inside[1]


def another_upload(inside: Records, other: Records, rng: torch.Generator) -> Records:
    del inside, rng
    return other


@pytest.mark.slow
@pytest.mark.parametrize("guesses_of", [noise, another_upload])
@pytest.mark.parametrize("name", ["fashion-mnist", "mnist"])
def test_guesses_that_know_nothing_have_no_small_p(name: str, guesses_of: Guesses) -> None:
    """p is uniform but for ties, which make it larger: a permutation with as many votes counts as well."""
    values = np.sort(p_values(name, guesses_of))
    expected = np.arange(1, SEEDS + 1) / SEEDS
    assert float((expected - values).max()) < 0.152  # Kolmogorov and Smirnov, one side, at 1 %
    assert (values < 0.01).sum() <= 4 and 0.45 < values.mean() < 0.65


@pytest.mark.slow
def test_pictures_that_nobody_recognises_tell_whose_they_are() -> None:
    def faint(inside: Records, other: Records, rng: torch.Generator) -> Records:
        del other
        return 0.4 * inside[0] + torch.randn(inside[0].shape, generator=rng, device="cpu"), inside[1]

    values = p_values("fashion-mnist", faint, seeds=20)
    assert np.mean(np.array(values) < 0.01) > 0.85


def test_a_permutation_with_as_many_votes_counts_against_the_upload() -> None:
    pictures = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0), device="cpu")
    labels = torch.zeros(1, dtype=torch.long, device="cpu")
    test = matching_test(pictures[:1], labels, (pictures[:1], labels), (pictures[1:], labels), Seeds(0))
    assert test["hits"] == 1 and 0.4 < test["p"] < 0.6  # one of two candidates: half of all permutations


def test_a_guess_of_one_colour_correlates_with_nothing() -> None:
    flat = torch.full((1, 1, 4, 4), 0.5, device="cpu")
    picture = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0), device="cpu")
    assert float(correlation(flat, picture)) == 0 and float(correlation(picture, picture)) == pytest.approx(1)


def test_a_class_without_other_pictures_has_no_vote() -> None:
    pictures = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0), device="cpu")
    labels = torch.tensor([0, 0], device="cpu")
    others = (pictures, torch.tensor([1, 1], device="cpu"))
    assert matching_test(pictures, labels, (pictures, labels), others, Seeds(0)) == {}
