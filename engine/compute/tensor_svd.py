"""The spectrum of one layer over its clients: singular values per frequency, and how all of them are lowered (T-tSVD).

A stack (clients, out, ...) goes through the unnormalised Fourier transform along the clients; every frequency is then
a matrix (out, rest), for a bias one of a single row. The weights are real, so frequencies i and K - i are conjugate,
and the first K//2 + 1 say everything. Frequency 0 is K times the mean model. Beside it: how far apart the clients are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from engine.compute.threads import ThreadTeam
from engine.errors import RunFailed, refusal

REACH = 0.1  # singular values below this share of the largest are looked for anew, on a scale of their own
RANKS = 32  # singular values of one frequency that are told
FLOOR = 1e-6  # what is below this share of the largest is told as that: single precision knows no better


def t_tsvd(stack: Tensor, threshold: float, team: ThreadTeam | None = None) -> Tensor:
    """Lower every singular value of every frequency by the threshold, never below 0.

    The error is a few roundings of the stack's own type, on the scale of the largest singular value of the frequency.
    """
    if not threshold >= 0:
        raise refusal("spectrum", "a threshold must be 0 or more", threshold)
    if threshold == 0:
        return stack.clone()
    waves, matrices = _frequencies(stack)
    for wave, lowered in zip(waves, _each(partial(_lowered, threshold=threshold), matrices, team), strict=True):
        wave.copy_(lowered)
    smoothed: Tensor = torch.fft.irfft(waves, n=len(stack), dim=0)
    return smoothed.view_as(stack)


def soft(matrix: Tensor, threshold: float) -> Tensor:
    """The same for one model's tensor (out, ...), which is a stack of a single client."""
    return t_tsvd(matrix[None], threshold)[0]


def spectra(stack: Tensor, team: ThreadTeam | None = None) -> Tensor:
    """Singular values, (K//2 + 1 frequencies, the smaller of out and rest), largest first.

    A threshold that reaches the largest of them all erases the layer.
    """
    return torch.stack(_each(torch.linalg.svdvals, _frequencies(stack)[1], team))


def matrices(clients: int) -> float:
    """How many complex matrices so many clients come to; one that is real by nature counts a quarter."""
    real = 1 if clients % 2 else 2
    return real / 4 + (clients // 2 + 1 - real)


def thinned(values: Tensor) -> tuple[tuple[int, ...], Tensor]:
    """Of spectra (frequencies, ranks) at most so many ranks, from 1: closest at both ends, where they fall fastest."""
    last = values.shape[1] - 1
    turns = (math.pi * at / (RANKS - 1) for at in range(RANKS))
    places = sorted({round(last * (1 - math.cos(turn)) / 2) for turn in turns}) if last >= RANKS else range(last + 1)
    return tuple(place + 1 for place in places), values[:, list(places)].clamp(min=FLOOR * float(values.max()))


def roughness(stack: Tensor) -> Tensor:
    """How far each row of a layer (clients, rows, ...) is from the same row of the other clients: (rows, clients).

    The mean of the squared distances, found by way of their common middle; 0 for a client alone.
    """
    many = len(stack)
    away = (stack.double() - stack.double().mean(0)).flatten(2).square().sum(2)  # (clients, rows)
    return ((many * away + away.sum(0)) / max(many - 1, 1)).mT


def _frequencies(stack: Tensor) -> tuple[Tensor, list[Tensor]]:
    """All frequencies in one tensor, and each as a matrix: real where its imaginary part is nothing by nature."""
    many = len(stack)
    waves = torch.fft.rfft(stack.reshape(many, 1 if stack.dim() == 2 else stack.shape[1], -1), dim=0)
    if not math.isfinite(_peak(waves)):
        raise RunFailed(
            "a spectrum needs finite numbers, and the clients' weights are no longer that",
            "Lower the learning rate, the server step or the noise",
        )
    return waves, [wave.real if 2 * at % many == 0 else wave for at, wave in enumerate(waves)]


def _each(work: Callable[[Tensor], Tensor], matrices: Sequence[Tensor], team: ThreadTeam | None) -> list[Tensor]:
    """Each frequency by itself; a graphics card works on one after the other."""
    return team.each(work, matrices) if team and matrices[0].is_cpu else list(map(work, matrices))


def _lowered(matrix: Tensor, threshold: float) -> Tensor:
    """Any matrix on a scale of 1 and lying on its side, so that no square leaves the range of its numbers."""
    if matrix.shape[0] > matrix.shape[1]:
        return _lowered(matrix.mT, threshold).mT
    peak = _peak(matrix)
    if peak < torch.finfo(matrix.dtype).tiny:
        return torch.zeros_like(matrix)
    return _shrunk(matrix / peak, threshold / peak).mul_(peak)


def _shrunk(matrix: Tensor, threshold: float) -> Tensor:
    """Singular vectors from the Gram matrix, whose squares bury what is small; that is taken out and lowered apart."""
    squares, axes = torch.linalg.eigh(matrix @ matrix.mH)
    values = squares.clamp(min=0).sqrt()
    reach = REACH * float(values[-1])
    kept = values > max(threshold, reach)
    loud = axes[:, kept]
    result: Tensor = torch.linalg.multi_dot([loud * (1 - threshold / values[kept]), loud.mH, matrix])
    quiet = axes[:, values <= reach]
    if threshold < reach and quiet.shape[1]:
        result += quiet @ _lowered(quiet.mH @ matrix, threshold)
    return result


def _peak(tensor: Tensor) -> float:
    """The largest entry; of complex numbers the larger part, which cannot overflow."""
    return float((torch.view_as_real(tensor) if tensor.is_complex() else tensor).abs().max())
