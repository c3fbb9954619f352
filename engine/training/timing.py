"""How long a question will take on this machine: a few steps are timed, the rest is counted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch

from engine.compute.context import ClientContext
from engine.compute.sgd import STACK, scores
from engine.compute.tensor_svd import matrices, spectra, t_tsvd
from engine.compute.threads import ThreadTeam
from engine.records import Client, Seat
from engine.seeds import Seeds
from engine.training.plan import Plan

TRIES = 3  # the best of them counts
TESTED = 500  # pictures
STACKED = (3, 64, 784)  # clients, rows, columns of the tensor that is decomposed to time it


class StepSeconds(NamedTuple):
    """Seconds of one client's step, and of testing 500 pictures."""

    step: float
    test: float


_paces: dict[str, StepSeconds] = {}  # measured once per process


def seconds(plan: Plan, threads: int) -> float:
    """The expected time of the whole run."""
    spec, world, last = plan.spec, plan.world, plan.last
    batch = min(spec.batch, max(world.sizes))
    parts = [spec.method.name, spec.model.name, spec.model.values(), spec.dataset.name, batch]
    key = json.dumps(parts, sort_keys=True)
    step, test = _paces[key] = _paces.get(key) or timed(plan, batch)
    middle = sorted(range(world.clients), key=lambda client: world.sizes[client])[world.clients // 2]
    usual = plan.method.protocol(world, Seat(middle, 0, 1, 1, 1, world.sampled), "server")
    steps = usual.steps * (1 + _heads(plan) / world.local.epochs)
    training = world.sampled * plan.method.exchanges(world) * steps * step
    testing = test * len(plan.test_labels) / TESTED
    effort = plan.method.effort(world, last)
    beside = effort.judged * test + (effort.decomposed * decomposing() if effort.decomposed else 0.0)
    return last * training / min(threads, world.sampled) + (last * testing + beside) / threads


def _heads(plan: Plan) -> int:
    """Epochs in which a client trains a last layer of its own."""
    return int(getattr(plan.method, "head_epochs", 0))


def timed(plan: Plan, batch: int) -> StepSeconds:
    """One epoch of one batch, and one of the last layer where clients have their own; then a test."""
    many = STACK if plan.world.stacked else 1
    method = plan.method.with_(head_epochs=1) if _heads(plan) else plan.method
    local = replace(plan.world.local, epochs=1, batch=batch)
    world = replace(plan.world, sizes=(batch,) * max(many, plan.world.clients), local=local)
    rng = plan.seeds.rng("timing")
    clients = [
        Client(place, plan.spec.model.example(world.shape, batch, rng), torch.zeros(batch).long())
        for place in range(many)
    ]
    x = plan.spec.model.example(world.shape, TESTED, rng)
    found = []
    with ThreadTeam(1) as team:
        contexts = [ClientContext(world, Seat(place, place, 1, 1, 1, many), plan.seeds, team) for place in range(many)]
        packets = [method.send(context.seat, world.weights, method.begin(world)) for context in contexts]
        for _ in range(TRIES):
            start = time.perf_counter()
            method.train_all(clients, packets, [None] * many, contexts)
            middle = time.perf_counter()
            team.each(scores, [world], [world.weights], [x])
            found.append(
                StepSeconds((middle - start) / many / (2 if _heads(plan) else 1), time.perf_counter() - middle)
            )
    return StepSeconds(min(one.step for one in found), min(one.test for one in found))


@cache
def decomposing() -> float:
    """Seconds for one unit of rows² · columns, of smoothing a stack and telling its spectra."""
    clients, rows, columns = STACKED
    stack = torch.randn(STACKED, generator=Seeds(0).rng("pace"))
    found = []
    with ThreadTeam(1) as team:
        for _ in range(TRIES):
            start = time.perf_counter()
            team.each(lambda one: spectra(t_tsvd(one, 0.1)), [stack])
            found.append(time.perf_counter() - start)
    return min(found) / (matrices(clients) * rows**2 * columns)
