"""Checks a guess and the truth, assigns guesses to originals, and makes the trivial guess."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.errors import BadInput, refusal


def paired(metric: str, guess: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Two pictures (channels, height, width) in double precision, the guess clipped to [0, 1]."""
    if truth.dim() != 3 or truth.numel() == 0:
        raise refusal(f"{metric}: truth", "must be one picture (channels, height, width)", tuple(truth.shape))
    if guess.shape != truth.shape:
        raise refusal(f"{metric}: guess", f"must have the shape {tuple(truth.shape)} of the truth", tuple(guess.shape))
    return _checked_guess(metric, guess), _checked_truth(metric, truth)


def matched(guess: Tensor, truth: Tensor) -> Tensor:
    """The index of the guess for each original, so that the total distance is smallest; spare guesses are unused.

    Both are (pictures, channels, height, width). An original without a guess gets the index `len(guess)`. Append a
    picture of your choice to the guesses before you index with this order; without it, indexing raises IndexError.
    """
    from scipy.optimize import linear_sum_assignment

    if truth.dim() != 4 or guess.dim() != 4 or guess.shape[1:] != truth.shape[1:] or truth[0:1].numel() == 0:
        rule = f"must be pictures (m, channels, height, width) like the truth {tuple(truth.shape)}"
        raise refusal("matching: guess", rule, tuple(guess.shape))
    originals = _checked_truth("matching", truth).flatten(1)
    guesses = _checked_guess("matching", guess).flatten(1)
    # Matrix multiplication would be faster, but it loses the small differences between similar pictures.
    costs = torch.cdist(originals, guesses, compute_mode="donot_use_mm_for_euclid_dist").square()  # (pictures, guesses)
    rows, columns = linear_sum_assignment(costs.numpy())
    order = torch.full((len(truth),), len(guess), dtype=torch.int64)
    order[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return order


def trivial(truth: Tensor) -> Tensor:
    """The mean colour of each picture (m, channels, height, width): the guess of someone who knows nothing else."""
    return truth.mean(dim=(2, 3), keepdim=True).expand_as(truth).contiguous()


def _checked_guess(metric: str, guess: Tensor) -> Tensor:
    """The guess clipped to [0, 1] in double precision.

    NaN and infinity are refused, not replaced: a failed attack must not look like a strong defence.
    """
    pixels = guess.detach().to("cpu", torch.float64)
    if not bool(pixels.isfinite().all()):
        raise BadInput(f"{metric}: guess: every pixel must be a number", "The attack diverged: give it a smaller step")
    return pixels.clamp(0, 1)


def _checked_truth(metric: str, truth: Tensor) -> Tensor:
    pixels = truth.detach().to("cpu", torch.float64)
    if not bool(((pixels >= 0) & (pixels <= 1)).all()):
        raise BadInput(f"{metric}: truth: every pixel must lie between 0 and 1", "Undo the normalisation first")
    return pixels
