"""The matching test: whether the guesses of an upload tell whose pictures were in it, recognisable or not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from engine.seeds import Seeds

PERMUTATIONS = 999

Candidates = tuple[Tensor, NDArray[np.bool_]]  # pictures of one class, and which of them were in the upload


def matching_test(
    guesses: Tensor, guessed: Tensor, members: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], seeds: Seeds
) -> Mapping[str, float]:
    """Counts the guesses that are nearer to a picture of the upload than to other pictures of its class.

    `guessed` holds the classes that the attack gave its guesses. `members` are the pictures of the upload and their
    classes; `others` are other pictures of the same split. Each class has equally many of both. A guess votes for the
    candidate of its class with the highest correlation. Permuting which candidates are members gives p: guesses depend
    on each other, so their votes follow no binomial law. Without a class that has both, the result is empty.
    """
    votes: list[tuple[NDArray[np.int64], NDArray[np.bool_]]] = []
    for label in guessed.unique().tolist():
        candidates = _candidates(label, members, others, seeds)
        if candidates is None:
            continue
        pictures, is_member = candidates
        nearest = correlation(guesses[guessed == label], pictures).argmax(dim=1)
        votes.append((np.bincount(nearest.numpy(), minlength=len(pictures)), is_member))
    if not votes:
        return {}
    hits = sum(int(counts[is_member].sum()) for counts, is_member in votes)
    total = sum(int(counts.sum()) for counts, _ in votes)
    rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=seeds.rng("permutations"), device="cpu")))
    permuted = np.zeros(PERMUTATIONS, dtype=np.int64)
    for counts, is_member in votes:
        shuffled = rng.permuted(np.tile(is_member, (PERMUTATIONS, 1)), axis=1)  # (permutations, candidates)
        permuted += shuffled @ counts
    p = (1 + int((permuted >= hits).sum())) / (PERMUTATIONS + 1)
    return {"hits": hits, "guesses": total, "p": p}


def _candidates(
    label: int, members: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], seeds: Seeds
) -> Candidates | None:
    """Equally many members and other pictures of one class, shuffled; None where one of them has none."""
    inside = members[0][members[1] == label]
    outside = others[0][others[1] == label]
    count = min(len(inside), len(outside))
    if count == 0:
        return None
    rng = seeds.rng("candidates", label)
    inside = inside[torch.randperm(len(inside), generator=rng, device="cpu")[:count]]
    outside = outside[torch.randperm(len(outside), generator=rng, device="cpu")[:count]]
    order = torch.randperm(2 * count, generator=rng, device="cpu")
    is_member = order < count
    return torch.cat([inside, outside])[order], is_member.numpy()


def correlation(guesses: Tensor, pictures: Tensor) -> Tensor:
    """The correlation of the pixels of each guess with those of each picture: (guesses, pictures).

    A picture of one colour correlates with nothing.
    """
    return _centred(guesses).mm(_centred(pictures).t())


def _centred(pictures: Tensor) -> Tensor:
    pixels = pictures.detach().to("cpu", torch.float64).flatten(1)
    pixels = pixels - pixels.mean(dim=1, keepdim=True)
    return normalize(pixels, dim=1)
