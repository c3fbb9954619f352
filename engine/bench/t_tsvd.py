"""The T-tSVD of ten LeNet-5 models. The peer computes one complex SVD for each of the ten frequencies with numpy."""

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
from engine.bench.clock import PairedTimes, time_pair
from engine.compute.tensor_svd import spectra, t_tsvd
from engine.compute.threads import set_thread_modes
from engine.errors import refusal
from engine.seeds import Seeds
from engine.specs.run import RunSpec
from engine.training.plan import make_plan

Stacks = Mapping[str, Tensor]
Arrays = dict[str, NDArray[Any]]
CLIENTS = 10
NOISE = 0.1 / 10**0.5  # on each of ten models, from σ = 1, C = 1 and a server step of 0.1
SMOOTHINGS = (85.0, 0.6)  # two of the paper's λ for CIFAR-10: thresholds 0.0059 and 0.83
SIDE = 256
CONDITION = 1e6
FASTER = 5
ERROR = 1e-5


def measure() -> BenchRow:
    set_thread_modes()
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    if threads != "1":
        raise refusal("bench t-tsvd", "both sides have one thread: OPENBLAS_NUM_THREADS must be 1", threads)
    models = noisy_models()
    hard = {"hard": ill_conditioned()}
    errors = [error(models, 0.5 / smoothing) for smoothing in SMOOTHINGS]
    times = {smoothing: time_both(models, 0.5 / smoothing) for smoothing in SMOOTHINGS}
    values = spectra(hard["hard"].double())
    largest = float(values.max())
    ours = {f"λ={smoothing:g} s": min(pair.ours) for smoothing, pair in times.items()}
    ours["error"] = max(errors)
    ours["condition"] = float((values[:, 0] / values[:, -1]).max())
    ours["error there"] = max(error(hard, share * largest) for share in (1e-6, 1e-4, 0.01, 0.1))
    peer = {f"λ={smoothing:g} s": min(pair.peer) for smoothing, pair in times.items()}
    ratio = min(pair.ratio for pair in times.values())
    kept = ratio >= FASTER and max(ours["error"], ours["error there"]) < ERROR
    return BenchRow("t-tsvd", ours, peer, ratio, f"at least {FASTER} times, errors below {ERROR:g}", kept)


def noisy_models() -> Stacks:
    """The weights of ten models: for each layer one tensor, clients first."""
    world = make_plan(RunSpec(dataset="cifar10", model="lenet5", clients=CLIENTS, sampled=CLIENTS)).world
    seeds = Seeds(0)
    stacks = {}
    for layer, (name, tensor) in enumerate(world.weights.items()):
        noise = torch.randn((CLIENTS, *tensor.shape), generator=seeds.rng("bench", layer))
        stacks[name] = tensor + NOISE * noise
    return stacks


def ill_conditioned() -> Tensor:
    """A tensor whose singular values, at every frequency, go from 1 down to 1e-6 in equal logarithmic steps."""
    rng = Seeds(0).rng("bench")
    waves = torch.fft.rfft(torch.randn(CLIENTS, SIDE, SIDE, generator=rng, dtype=torch.float64), dim=0)
    left, _, right = torch.linalg.svd(waves)
    values = torch.logspace(0, -np.log10(CONDITION), SIDE, dtype=torch.float64)
    stack: Tensor = torch.fft.irfft((left * values) @ right, n=CLIENTS, dim=0)
    return stack.float()


def time_both(stacks: Stacks, threshold: float) -> PairedTimes:
    """No warm-up here: `error` has already run both."""
    return time_pair(
        partial(ours, stacks, threshold), partial(slice_by_slice, stacks, threshold), repeats=3, warm_ups=0
    )


def error(stacks: Stacks, threshold: float) -> float:
    """The distance between our result and the peer's, over all layers, relative to the norm of the peer's."""
    expected = slice_by_slice(stacks, threshold)
    results = ours(stacks, threshold)
    differences = {name: tensor.double().numpy() - expected[name] for name, tensor in results.items()}
    return norm(differences) / norm(expected)


def norm(arrays: Arrays) -> float:
    return float(sum(np.square(array).sum() for array in arrays.values()) ** 0.5)


def ours(stacks: Stacks, threshold: float) -> dict[str, Tensor]:
    return {name: t_tsvd(stack, threshold) for name, stack in stacks.items()}


def slice_by_slice(stacks: Stacks, threshold: float) -> Arrays:
    """The definition in double precision: one SVD for every frequency, also for conjugate ones."""
    smoothed = {}
    for name, stack in stacks.items():
        rows = 1 if stack.dim() == 2 else stack.shape[1]
        waves = np.fft.fft(stack.double().numpy().reshape(len(stack), rows, -1), axis=0)
        for index, wave in enumerate(waves):
            left, values, right = np.linalg.svd(wave, full_matrices=False)
            waves[index] = (left * np.maximum(values - threshold, 0)) @ right
        smoothed[name] = np.fft.ifft(waves, axis=0).real.reshape(stack.shape)
    return smoothed
