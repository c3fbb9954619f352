"""The expected time of a run on this machine: a few steps are timed, and the steps of the run are counted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from engine.compute.context import ClientContext
from engine.compute.sgd import STACK, scores
from engine.compute.tensor_svd import matrix_count, spectra, t_tsvd
from engine.compute.threads import ThreadTeam
from engine.records import Client, Seat
from engine.seeds import Seeds
from engine.training.plan import Plan

TRIES = 3  # the fastest one counts
TESTED = 500  # pictures
STACKED = (3, 64, 784)  # clients, rows, columns of the tensor whose decomposition is timed


class StepSeconds(NamedTuple):
    """Seconds of one client's step, and of testing 500 pictures."""

    step: float
    test: float


_step_seconds: dict[str, StepSeconds] = {}  # each is measured once per process


def seconds(plan: Plan, threads: int) -> float:
    """The expected seconds of the whole run."""
    world, last = plan.world, plan.last_round
    batch = min(plan.spec.batch, max(world.sizes))
    step, test = _measured(plan, batch)
    clients = world.sampled * plan.method.exchanges(world)
    training = clients * _steps(plan) * step
    testing = test * len(plan.test_labels) / TESTED
    extra = plan.method.effort(world, last)
    extra_seconds = extra.judged * test
    if extra.decomposed:
        extra_seconds += extra.decomposed * decomposing()
    return last * training / min(threads, world.sampled) + (last * testing + extra_seconds) / threads


def _measured(plan: Plan, batch: int) -> StepSeconds:
    spec = plan.spec
    parts = [spec.method.name, spec.model.name, spec.model.values(), spec.dataset.name, batch]
    key = json.dumps(parts, sort_keys=True)
    if key not in _step_seconds:
        _step_seconds[key] = timed(plan, batch)
    return _step_seconds[key]


def _steps(plan: Plan) -> float:
    """The steps of a client with the median number of pictures in one exchange, with those of its own last layer."""
    world = plan.world
    median = sorted(range(world.clients), key=lambda client: world.sizes[client])[world.clients // 2]
    protocol = plan.method.protocol(world, Seat(median, 0, 1, 1, 1, world.sampled), "server")
    return protocol.steps * (1 + _head_epochs(plan) / world.local.epochs)


def _head_epochs(plan: Plan) -> int:
    """Epochs in which a client trains a last layer of its own."""
    return int(getattr(plan.method, "head_epochs", 0))


def timed(plan: Plan, batch: int) -> StepSeconds:
    """Time one epoch of one batch, one more of the clients' own last layer if they have one, and a test."""
    count = STACK if plan.world.stacked else 1
    epochs = 2 if _head_epochs(plan) else 1
    method = plan.method.with_(head_epochs=1) if _head_epochs(plan) else plan.method
    local = replace(plan.world.local, epochs=1, batch=batch)
    world = replace(plan.world, sizes=(batch,) * max(count, plan.world.clients), local=local)
    rng = plan.seeds.rng("timing")
    example = plan.spec.model.example
    clients = [Client(id, example(world.shape, batch, rng), torch.zeros(batch).long()) for id in range(count)]
    x = example(world.shape, TESTED, rng)
    times: list[StepSeconds] = []
    with ThreadTeam(1) as team:
        contexts = [ClientContext(world, Seat(id, id, 1, 1, 1, count), plan.seeds, team) for id in range(count)]
        packets = [method.send(context.seat, world.weights, method.begin(world)) for context in contexts]
        for _ in range(TRIES):
            start = time.perf_counter()
            method.train_all(clients, packets, [None] * count, contexts)
            trained = time.perf_counter()
            team.each(scores, [world], [world.weights], [x])
            tested = time.perf_counter()
            times.append(StepSeconds((trained - start) / count / epochs, tested - trained))
    return StepSeconds(min(entry.step for entry in times), min(entry.test for entry in times))


@cache
def decomposing() -> float:
    """Seconds for one unit of rows² · columns, to smooth a stack and to compute its spectra."""
    clients, rows, columns = STACKED
    stack = torch.randn(STACKED, generator=Seeds(0).rng("pace"))
    times: list[float] = []
    with ThreadTeam(1) as team:
        for _ in range(TRIES):
            start = time.perf_counter()
            team.each(_smoothed_spectra, [stack])
            times.append(time.perf_counter() - start)
    return min(times) / (matrix_count(clients) * rows**2 * columns)


def _smoothed_spectra(stack: Tensor) -> None:
    spectra(t_tsvd(stack, 0.1))
