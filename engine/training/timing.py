"""The expected time of a run on this machine: a short trial of its method is timed, and the work is counted."""

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
from engine.methods import Method
from engine.records import Client, Seat, World
from engine.seeds import Seeds
from engine.training.plan import Plan

TRIES = 3  # the fastest one counts
FIRST_BATCH = 4  # pictures of the first trial; larger batches follow while a trial is short
SHORT = 0.05  # seconds
LONGEST = 0.4  # seconds for all trials, apart from the last one
TESTED = 500  # pictures
STACKED = (3, 64, 784)  # clients, rows, columns of the tensor whose decomposition is timed


class StepSeconds(NamedTuple):
    """Seconds of one client's step, of merging one upload, and of testing 500 pictures."""

    step: float
    merge: float
    test: float


_step_seconds: dict[str, StepSeconds] = {}  # each is measured once per process


def seconds(plan: Plan, threads: int) -> float:
    """The expected seconds of the whole run."""
    world, last = plan.world, plan.last_round
    batch = min(plan.spec.batch, max(world.sizes))
    measured = _measured(plan, batch)
    extra = plan.method.work(world, last)
    uploads = last * world.sampled * plan.method.exchanges(world)
    training = (uploads * _protocol_steps(plan.method, world) + extra.local_steps) * measured.step
    tested = last * len(plan.test_labels) / TESTED + extra.judged
    on_all_threads = tested * measured.test + extra.server_steps * measured.step
    if extra.decomposed:
        on_all_threads += extra.decomposed * decomposing()
    return training / min(threads, world.sampled) + on_all_threads / threads + uploads * measured.merge


def _measured(plan: Plan, batch: int) -> StepSeconds:
    spec = plan.spec
    parts = [spec.method.name, spec.model.name, spec.model.values(), spec.dataset.name, batch]
    key = json.dumps(parts, sort_keys=True)
    if key not in _step_seconds:
        _step_seconds[key] = timed(plan, batch)
    return _step_seconds[key]


def _protocol_steps(method: Method, world: World) -> float:
    """The steps in one upload of a client with the median number of pictures."""
    median = sorted(range(world.clients), key=lambda client: world.sizes[client])[world.clients // 2]
    return method.protocol(world, Seat(median, 0, 1, 1, 1, world.sampled), "server").steps


def timed(plan: Plan, batch: int) -> StepSeconds:
    """Time the method's trial with one batch of growing size. A batch that would take too long is extrapolated."""
    size = min(batch, FIRST_BATCH)
    _trial(plan, size)  # the first one also imports modules and builds the model
    began = time.perf_counter()
    fastest = _trial(plan, size)
    while size < batch and fastest.step < SHORT:
        size = min(batch, 4 * size)
        fastest = _trial(plan, size)
    tries = 1
    while tries < TRIES and time.perf_counter() - began < LONGEST:
        fastest = StepSeconds(*map(min, fastest, _trial(plan, size)))
        tries += 1
    return fastest._replace(step=fastest.step * batch / size)


def _trial(plan: Plan, size: int) -> StepSeconds:
    """One round of the method's least work, in which each client has one batch of this size."""
    count = STACK if plan.world.stacked else 1
    method = plan.method.trial()
    local = replace(plan.world.local, epochs=1, batch=size)
    clients = max(count, plan.world.clients)
    world = replace(plan.world, clients=clients, sampled=count, sizes=(size,) * clients, local=local)
    rng = plan.seeds.rng("timing")
    example = plan.spec.model.example
    trained: list[Client] = []
    for id in range(count):
        labels = torch.zeros(size, dtype=torch.int64, device=world.device)
        trained.append(Client(id, example(world.shape, size, rng).to(world.device), labels))
    steps = max(1.0, _protocol_steps(method, world) + method.work(world, 1).local_steps / count)
    with ThreadTeam(1) as team:
        contexts = [ClientContext(world, Seat(id, id, 1, 1, 1, count), plan.seeds, team) for id in range(count)]
        memory = method.begin(world)
        packets = [method.send(context.seat, world.weights, memory) for context in contexts]
        start = time.perf_counter()
        results = method.train_all(trained, packets, [None] * count, contexts)
        trained_at = time.perf_counter()
        server = ClientContext(world, Seat(-1, -1, 1, 1, 1, count), plan.seeds, team)
        method.merge(world.weights, [upload for upload, _ in results], memory, server)
        merged_at = time.perf_counter()
        step = (trained_at - start) / count / steps
        pictures = TESTED if step * TESTED / size < SHORT else size
        x = example(world.shape, pictures, rng).to(world.device)
        testing = time.perf_counter()
        team.each(scores, [world], [world.weights], [x])
        tested_at = time.perf_counter()
    return StepSeconds(step, (merged_at - trained_at) / count, (tested_at - testing) * TESTED / pictures)


@cache
def decomposing() -> float:
    """Seconds for one unit of rows² · columns, to smooth a stack and to compute its spectra."""
    clients, rows, columns = STACKED
    stack = torch.randn(STACKED, generator=Seeds(0).rng("pace"), device="cpu")
    times: list[float] = []
    with ThreadTeam(1) as team:
        for _ in range(TRIES):
            start = time.perf_counter()
            team.each(_smoothed_spectra, [stack])
            times.append(time.perf_counter() - start)
    return min(times) / (matrix_count(clients) * rows**2 * columns)


def _smoothed_spectra(stack: Tensor) -> None:
    spectra(t_tsvd(stack, 0.1))
