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


def seconds(outline: Plan, threads: int) -> float:
    """The expected time of the whole run."""
    spec, world, last = outline.spec, outline.world, outline.last
    batch = min(spec.batch, max(world.sizes))
    parts = [spec.method.name, spec.model.name, spec.model.values(), spec.dataset.name, batch]
    key = json.dumps(parts, sort_keys=True)
    step, test = _paces[key] = _paces.get(key) or timed(outline, batch)
    middle = sorted(range(world.clients), key=lambda client: world.sizes[client])[world.clients // 2]
    usual = outline.method.protocol(world, Seat(middle, 0, 1, 1, 1, world.sampled), "server")
    steps = usual.steps * (1 + _heads(outline) / world.local.epochs)
    training = world.sampled * outline.method.exchanges(world) * steps * step
    testing = test * len(outline.test_labels) / TESTED
    effort = outline.method.effort(world, last)
    beside = effort.judged * test + (effort.decomposed * decomposing() if effort.decomposed else 0.0)
    return last * training / min(threads, world.sampled) + (last * testing + beside) / threads


def _heads(outline: Plan) -> int:
    """Epochs in which a client trains a last layer of its own."""
    return int(getattr(outline.method, "head_epochs", 0))


def timed(outline: Plan, batch: int) -> StepSeconds:
    """One epoch of one batch, and one of the last layer where clients have their own; then a test."""
    many = STACK if outline.world.stacked else 1
    method = outline.method.with_(head_epochs=1) if _heads(outline) else outline.method
    local = replace(outline.world.local, epochs=1, batch=batch)
    world = replace(outline.world, sizes=(batch,) * max(many, outline.world.clients), local=local)
    rng = outline.seeds.rng("timing")
    clients = [
        Client(place, outline.spec.model.example(world.shape, batch, rng), torch.zeros(batch).long())
        for place in range(many)
    ]
    x = outline.spec.model.example(world.shape, TESTED, rng)
    found = []
    with ThreadTeam(1) as crew:
        desks = [ClientContext(world, Seat(place, place, 1, 1, 1, many), outline.seeds, crew) for place in range(many)]
        packets = [method.send(desk.seat, world.weights, method.begin(world)) for desk in desks]
        for _ in range(TRIES):
            start = time.perf_counter()
            method.train_all(clients, packets, [None] * many, desks)
            middle = time.perf_counter()
            crew.each(scores, [world], [world.weights], [x])
            found.append(
                StepSeconds((middle - start) / many / (2 if _heads(outline) else 1), time.perf_counter() - middle)
            )
    return StepSeconds(min(one.step for one in found), min(one.test for one in found))


@cache
def decomposing() -> float:
    """Seconds for one unit of rows² · columns, of smoothing a stack and telling its spectra."""
    clients, rows, columns = STACKED
    stack = torch.randn(STACKED, generator=Seeds(0).rng("pace"))
    found = []
    with ThreadTeam(1) as crew:
        for _ in range(TRIES):
            start = time.perf_counter()
            crew.each(lambda one: spectra(t_tsvd(one, 0.1)), [stack])
            found.append(time.perf_counter() - start)
    return min(found) / (matrices(clients) * rows**2 * columns)
