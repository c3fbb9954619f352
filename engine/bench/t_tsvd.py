"""Ten LeNet-5 smoothed as one tensor: the peer takes one complex SVD per frequency with numpy, all ten of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.bench import BenchRow
from engine.bench.clock import Race, race
from engine.compute.tensor_svd import spectra, t_tsvd
from engine.compute.threads import set_thread_modes
from engine.errors import refusal
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import make_plan

Stacks = Mapping[str, Tensor]
Arrays = dict[str, NDArray[Any]]
CLIENTS, NOISE = 10, 0.1 / 10**0.5  # what σ = 1, C = 1 and a server step of 0.1 leave on each of ten models
SMOOTHINGS = (85.0, 0.6)  # two of the paper's λ for CIFAR-10: thresholds 0.0059 and 0.83
SIDE, CONDITION = 256, 1e6
FASTER, ERROR = 5, 1e-5


def measure() -> BenchRow:
    set_thread_modes()
    if (threads := os.environ.get("OPENBLAS_NUM_THREADS")) != "1":
        raise refusal("bench t-tsvd", "both sides have one thread: OPENBLAS_NUM_THREADS must be 1", threads)
    models, hard = clients(), {"hard": ill_conditioned()}
    errors = [error(models, 0.5 / smoothing) for smoothing in SMOOTHINGS]
    races = [against(models, 0.5 / smoothing) for smoothing in SMOOTHINGS]
    values = spectra(hard["hard"].double())
    ours = {f"λ={smoothing:g} s": min(one.ours) for smoothing, one in zip(SMOOTHINGS, races, strict=True)}
    ours |= {
        "error": max(errors),
        "condition": float((values[:, 0] / values[:, -1]).max()),
        "error there": max(error(hard, share * float(values.max())) for share in (1e-6, 1e-4, 0.01, 0.1)),
    }
    peer = {f"λ={smoothing:g} s": min(one.peer) for smoothing, one in zip(SMOOTHINGS, races, strict=True)}
    ratio = min(one.ratio for one in races)
    kept = ratio >= FASTER and max(ours["error"], ours["error there"]) < ERROR
    return BenchRow("t-tsvd", ours, peer, ratio, f"at least {FASTER} times, errors below {ERROR:g}", kept)


def clients() -> Stacks:
    world, rng = make_plan(RunSpec(dataset="cifar10", model="lenet5", clients=CLIENTS, sampled=CLIENTS)).world, Seeds(0)
    return {
        name: tensor + NOISE * torch.randn((CLIENTS, *tensor.shape), generator=rng.rng("bench", place))
        for place, (name, tensor) in enumerate(world.weights.items())
    }


def ill_conditioned() -> Tensor:
    """Every frequency with singular values evenly spread, in logarithms, between 1 and one part in a million."""
    rng = Seeds(0).rng("bench")
    waves = torch.fft.rfft(torch.randn(CLIENTS, SIDE, SIDE, generator=rng, dtype=torch.float64), dim=0)
    left, _, right = torch.linalg.svd(waves)
    values = torch.logspace(0, -np.log10(CONDITION), SIDE, dtype=torch.float64)
    stack: Tensor = torch.fft.irfft((left * values) @ right, n=CLIENTS, dim=0)
    return stack.float()


def against(stacks: Stacks, threshold: float) -> Race:
    """Both were warmed up where their answers were compared."""
    return race(partial(ours, stacks, threshold), partial(slice_by_slice, stacks, threshold), turns=3, warm=0)


def error(stacks: Stacks, threshold: float) -> float:
    """How far the answer is from that of the peer, relative to its norm; all layers together."""
    theirs = slice_by_slice(stacks, threshold)
    apart = {name: tensor.double().numpy() - theirs[name] for name, tensor in ours(stacks, threshold).items()}
    return norm(apart) / norm(theirs)


def norm(arrays: Arrays) -> float:
    return float(sum(np.square(array).sum() for array in arrays.values()) ** 0.5)


def ours(stacks: Stacks, threshold: float) -> dict[str, Tensor]:
    return {name: t_tsvd(stack, threshold) for name, stack in stacks.items()}


def slice_by_slice(stacks: Stacks, threshold: float) -> Arrays:
    """By the book, in double precision: every frequency, conjugate or not, has an SVD of its own."""
    lowered = {}
    for name, stack in stacks.items():
        rows = 1 if stack.dim() == 2 else stack.shape[1]
        waves = np.fft.fft(stack.double().numpy().reshape(len(stack), rows, -1), axis=0)
        for place, wave in enumerate(waves):
            left, values, right = np.linalg.svd(wave, full_matrices=False)
            waves[place] = (left * np.maximum(values - threshold, 0)) @ right
        lowered[name] = np.fft.ifft(waves, axis=0).real.reshape(stack.shape)
    return lowered
