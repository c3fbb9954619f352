"""The spectrum of one layer over its clients: singular values per frequency, and their soft threshold (T-tSVD).

The unnormalised Fourier transform of a stack (clients, out, ...) runs along the clients. Each frequency is then a
matrix (out, rest); for a bias it has a single row. The weights are real, so frequencies i and K - i are conjugate, and
the first K//2 + 1 suffice. Frequency 0 is K times the mean model. `roughness` measures how far the clients differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.errors import RunFailed, refusal

REACH = 0.1  # singular values below this share of the largest are computed again, on their own scale
RANKS = 32  # reported singular values per frequency
FLOOR = 1e-6  # smaller shares of the largest value are reported as this: single precision cannot resolve them


def t_tsvd(stack: Tensor, threshold: float, team: ThreadTeam | None = None) -> Tensor:
    """Lower every singular value of every frequency by the threshold, but not below 0.

    The error is a few roundings in the stack's own type, relative to the largest singular value of the frequency.
    """
    if not threshold >= 0:
        raise refusal("spectrum", "a threshold must be 0 or more", threshold)
    if threshold == 0:
        return stack.clone()
    waves, matrices = _frequencies(stack)
    lowered = _each(partial(_lowered, threshold=threshold), matrices, team)
    for wave, matrix in zip(waves, lowered, strict=True):
        wave.copy_(matrix)
    smoothed: Tensor = torch.fft.irfft(waves, n=len(stack), dim=0)
    return smoothed.view_as(stack)


def soft_threshold(matrix: Tensor, threshold: float) -> Tensor:
    """The same for the tensor (out, ...) of one model, which is a stack of one client."""
    return t_tsvd(matrix[None], threshold)[0]


def spectra(stack: Tensor, team: ThreadTeam | None = None) -> Tensor:
    """Singular values, (K//2 + 1 frequencies, the smaller of out and rest), largest first.

    A threshold that reaches the largest of them all erases the layer.
    """
    return torch.stack(_each(torch.linalg.svdvals, _frequencies(stack)[1], team))


def matrix_count(clients: int) -> float:
    """The number of complex matrices for this number of clients. A matrix that is always real counts a quarter."""
    real = 1 if clients % 2 else 2
    return real / 4 + (clients // 2 + 1 - real)


def thinned(values: Tensor) -> tuple[tuple[int, ...], Tensor]:
    """At most `RANKS` ranks, from 1, of spectra (frequencies, ranks), and their values.

    The ranks are densest at both ends, where the values fall fastest.
    """
    last = values.shape[1] - 1
    indices = list(range(last + 1))
    if last >= RANKS:
        angles = (math.pi * at / (RANKS - 1) for at in range(RANKS))
        indices = sorted({round(last * (1 - math.cos(angle)) / 2) for angle in angles})
    ranks = tuple(index + 1 for index in indices)
    return ranks, values[:, indices].clamp(min=FLOOR * float(values.max()))


def roughness(stack: Tensor) -> Tensor:
    """How far each row of a layer (clients, rows, ...) is from the same row of the other clients: (rows, clients).

    It is the mean squared distance, computed from distances to the mean row; 0 for a single client.
    """
    clients = len(stack)
    to_mean = (stack.double() - stack.double().mean(0)).flatten(2).square().sum(2)  # (clients, rows)
    return ((clients * to_mean + to_mean.sum(0)) / max(clients - 1, 1)).mT


def _frequencies(stack: Tensor) -> tuple[Tensor, list[Tensor]]:
    """All frequencies in one tensor, and each as a matrix; frequencies that are always real as real matrices."""
    clients = len(stack)
    rows = 1 if stack.dim() == 2 else stack.shape[1]
    waves = torch.fft.rfft(stack.reshape(clients, rows, -1), dim=0)
    if not math.isfinite(_peak(waves)):
        raise RunFailed(
            "the clients' weights contain values that are not finite numbers, so they have no spectrum",
            "Lower the learning rate, the server step or the noise",
        )
    matrices = [wave.real if 2 * at % clients == 0 else wave for at, wave in enumerate(waves)]
    return waves, matrices


def _each(work: Callable[[Tensor], Tensor], matrices: Sequence[Tensor], team: ThreadTeam | None) -> list[Tensor]:
    """Call `work` for each frequency: in parallel on a processor, one after the other on a graphics card."""
    return team.each(work, matrices) if team and matrices[0].is_cpu else list(map(work, matrices))


def _lowered(matrix: Tensor, threshold: float) -> Tensor:
    """Any matrix with lowered singular values.

    It is first made wide by transposing, and scaled to a peak of 1. So no square leaves the range of its type.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return _lowered(matrix.mT, threshold).mT
    peak = _peak(matrix)
    if peak < torch.finfo(matrix.dtype).tiny:
        return torch.zeros_like(matrix)
    return _lowered_unit(matrix / peak, threshold / peak).mul_(peak)


def _lowered_unit(matrix: Tensor, threshold: float) -> Tensor:
    """The same for a wide matrix with peak 1. The singular vectors come from the Gram matrix.

    Its squares lose the small singular values in rounding, so those are projected out and lowered separately.
    """
    squares, vectors = torch.linalg.eigh(matrix @ matrix.mH)
    values = squares.clamp(min=0).sqrt()
    reach = REACH * float(values[-1])
    kept = values > max(threshold, reach)
    large = vectors[:, kept]
    result: Tensor = torch.linalg.multi_dot([large * (1 - threshold / values[kept]), large.mH, matrix])
    small = vectors[:, values <= reach]
    if threshold < reach and small.shape[1]:
        result += small @ _lowered(small.mH @ matrix, threshold)
    return result


def _peak(tensor: Tensor) -> float:
    """The largest absolute entry. For complex numbers it is that of real and imaginary parts, which cannot overflow."""
    return float((torch.view_as_real(tensor) if tensor.is_complex() else tensor).abs().max())
