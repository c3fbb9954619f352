"""Guesses brought before the truth: checked and clipped, each to the picture it fits best, and the guess of nobody."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.errors import BadInput, refusal


def paired(who: str, guess: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Two pictures (channels, height, width) in double precision, the guess clipped to [0, 1]."""
    if truth.dim() != 3 or truth.numel() == 0:
        raise refusal(f"{who}: truth", "must be one picture (channels, height, width)", tuple(truth.shape))
    if guess.shape != truth.shape:
        raise refusal(f"{who}: guess", f"must have the shape {tuple(truth.shape)} of the truth", tuple(guess.shape))
    return _clipped(who, guess), _told(who, truth)


def matched(guess: Tensor, truth: Tensor) -> Tensor:
    """For each true picture the number of its guess, so that all together are nearest; spare guesses are left over.

    Both are (pictures, channels, height, width). Where no guess is left the number is `len(guess)`: put a picture of
    your choice behind the guesses before you take them in this order, else the missing one is an IndexError.
    """
    from scipy.optimize import linear_sum_assignment

    if truth.dim() != 4 or guess.dim() != 4 or guess.shape[1:] != truth.shape[1:] or truth[0:1].numel() == 0:
        law = f"must be pictures (m, channels, height, width) like the truth {tuple(truth.shape)}"
        raise refusal("matching: guess", law, tuple(guess.shape))
    ours, theirs = _told("matching", truth).flatten(1), _clipped("matching", guess).flatten(1)
    # (pictures, guesses) squared distances; the quick way through a product would lose what sets near ones apart
    costs = torch.cdist(ours, theirs, compute_mode="donot_use_mm_for_euclid_dist").square()
    rows, columns = linear_sum_assignment(costs.numpy())
    order = torch.full((len(truth),), len(guess), dtype=torch.int64)
    order[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return order


def trivial(truth: Tensor) -> Tensor:
    """The guess of somebody who knows only the mean colour of each picture (m, channels, height, width)."""
    return truth.mean(dim=(2, 3), keepdim=True).expand_as(truth).contiguous()


def _clipped(who: str, guess: Tensor) -> Tensor:
    """A failed attack must not look like a strong defence: what is no number is refused, not replaced."""
    held = guess.detach().to("cpu", torch.float64)
    if not bool(held.isfinite().all()):
        raise BadInput(f"{who}: guess: every pixel must be a number", "The attack diverged: give it a smaller step")
    return held.clamp(0, 1)


def _told(who: str, truth: Tensor) -> Tensor:
    held = truth.detach().to("cpu", torch.float64)
    if not bool(((held >= 0) & (held <= 1)).all()):
        raise BadInput(f"{who}: truth: every pixel must lie between 0 and 1", "Undo the normalisation first")
    return held
