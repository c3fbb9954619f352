"""Make the stored sweep of the first page: train every noise with every server step, keep the best, and attack it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.events import Event, Finished, Kept, Measured
from engine.examples import start
from engine.examples.publishing import (
    DIGITS,
    MANY,
    attack_body,
    attack_row,
    compact,
    damaged_preset,
    publish,
    publish_packed,
    read_preset,
    shipped,
    significant,
)
from engine.examples.runs import command
from engine.leakage.target import AttackResources
from engine.specs.attack_grid import baseline_of
from engine.training import shipped_states

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

Attacks = Mapping[str, Mapping[str, Sequence[str]]]  # the names of attacks by observer and upload
ROUND = "last"  # the attacked round: a trained model


@dataclass(frozen=True)
class StartRequest:
    """What assets/start/request.json names."""

    run: RunSpec
    noises: tuple[float, ...]
    steps: tuple[float, ...]  # server steps that are tried
    seeds: int
    picture: str
    attacks: Attacks


@dataclass(frozen=True)
class RecordedRun:
    """A finished run: what ships, and the state before its last round."""

    spec: RunSpec
    events: tuple[Event, ...]
    partition: Sequence[Sequence[int]]
    state: Kept

    @property
    def accuracy(self) -> float:
        measured = [event for event in self.events if isinstance(event, Measured)]
        values = [event.value for event in measured if (event.name, event.who) == ("accuracy", "global")]
        assert values[-1] is not None
        return values[-1]

    def body(self) -> dict[str, Any]:
        """The run as it ships."""
        ending = self.events[-1]
        assert isinstance(ending, Finished)
        fields = {name: value for name, value in self.spec.canonical().items() if name != "format"}
        return {
            "id": self.spec.id,
            "command": command(fields),
            "spec": self.spec.canonical(),
            "seconds": ending.seconds,
            "partition": {"train": self.partition},
            "events": [compact(event) for event in self.events],
        }


@dataclass(frozen=True)
class ChosenStop:
    """A noise with its best server step."""

    noise: float
    step: float
    runs: tuple[RecordedRun, ...]  # one for each seed
    tried: tuple[tuple[float, tuple[float, ...]], ...]  # each server step with its accuracies

    def body(self) -> dict[str, Any]:
        """The stop as it ships."""
        runs = [run.body() for run in self.runs]
        return {"noise": self.noise, "step": self.step, "tried": significant(self.tried, DIGITS), "runs": runs}


def read_request() -> StartRequest:
    """What is to be made."""
    fields = read_preset(start.REQUEST_FILE)
    try:
        return StartRequest(**fields)
    except TypeError as error:  # a field is missing, or there is another one
        raise damaged_preset(start.REQUEST_FILE, error) from None


# --- what is requested -------------------------------------------------------------------------------------


def run_spec(request: StartRequest, noise: float, step: float, seed: int) -> RunSpec:
    """One point of the sweep."""
    method = {**request.run.method.values(), "name": request.run.method.name, "noise": noise, "server-step": step}
    return request.run.with_(method=method, seed=seed)


def attack_specs(request: StartRequest, run: RunSpec, attacks: Attacks | None = None) -> Iterator[AttackSpec]:
    """Every requested attack on a run, or these. One that does not fit is left out."""
    from engine.leakage.compatibility import problem
    from engine.specs.attack import AttackSpec

    for view, uploads in (attacks or request.attacks).items():
        for upload, names in uploads.items():
            kind = "listed" if upload.isdecimal() else upload
            pictures = _pictures(request, int(upload) if upload.isdecimal() else 1)
            for name in names:
                spec = AttackSpec(run=run, attack=name, pictures=pictures, upload=kind, view=view, round=ROUND)
                if problem(spec) is None:
                    yield spec


def of_baseline(request: StartRequest) -> Attacks:
    """The attacks on the baseline: those of the server on one picture."""
    return {"server": {"1": request.attacks["server"]["1"]}}


def _pictures(request: StartRequest, many: int) -> tuple[str, ...]:
    """The chosen picture, and the first test pictures next to it, as the screen Leak fills an upload."""
    assert many <= MANY
    return (request.picture, *(f"test-{place}" for place in range(many - 1)))


# --- running and writing -----------------------------------------------------------------------------------


def make(threads: int) -> list[dict[str, Any]]:
    """Run everything and write what is kept. Returns a row for each run and attack, as `gallery` prints it."""
    request = read_request()
    with ProcessPoolExecutor(threads, get_context("spawn")) as pool:
        stops = _chosen_stops(request, pool)
        baseline = _baseline(request, stops[0], pool)
        first_runs = [stop.runs[0] for stop in stops]
        pairs = [(run, spec) for run in first_runs for spec in attack_specs(request, run.spec)]
        alone = attack_specs(request, baseline.runs[0].spec, of_baseline(request))
        pairs += [(baseline.runs[0], spec) for spec in alone]
        states = [run.state for run, _ in pairs]
        results = list(pool.map(_attacked, (spec for _, spec in pairs), states))
    specs = [spec for _, spec in pairs]
    body = {
        "format": start.FORMAT,
        "made": date.today().isoformat(),
        "stops": [stop.body() for stop in stops],
        "baseline": baseline.body(),
        "cells": [attack_body(spec, events, 1) for spec, events in zip(specs, results, strict=True)],
    }
    publish(shipped_states.FILE, shipped_states.packed((run.spec.id, run.state) for run in first_runs))
    publish_packed(start.RESULT_FILE, body)
    start.read.cache_clear()
    rows = [_run_row(run) for stop in (*stops, baseline) for run in stop.runs]
    return [*rows, *(attack_row(start.NAME, spec, events) for spec, events in zip(specs, results, strict=True))]


def _chosen_stops(request: StartRequest, pool: ProcessPoolExecutor) -> list[ChosenStop]:
    """The best server step of each noise, by the mean accuracy of all seeds."""
    places = [(noise, step) for noise in request.noises for step in request.steps]
    specs = [run_spec(request, noise, step, seed) for noise, step in places for seed in range(request.seeds)]
    recorded = list(pool.map(record, specs))
    by_place = {
        place: tuple(recorded[number * request.seeds : (number + 1) * request.seeds])
        for number, place in enumerate(places)
    }
    stops = []
    for noise in request.noises:
        tried = {step: tuple(run.accuracy for run in by_place[noise, step]) for step in request.steps}
        best = max(tried, key=lambda step: sum(tried[step]))
        stops.append(ChosenStop(noise, best, by_place[noise, best], tuple(tried.items())))
    return stops


def _baseline(request: StartRequest, first: ChosenStop, pool: ProcessPoolExecutor) -> ChosenStop:
    """The same runs without protection, with the default server step of their method."""
    specs = [baseline_of(run.spec) for run in first.runs]
    runs = tuple(pool.map(record, specs))
    step = float(runs[0].spec.method.values()["server-step"])
    return ChosenStop(0.0, step, runs, ((step, tuple(run.accuracy for run in runs)),))


def record(spec: RunSpec) -> RecordedRun:
    """Train a run, and keep what ships of it."""
    from engine.training.loop import run

    events: list[Event] = []
    kept: list[Kept] = []
    for event in run(spec):
        if isinstance(event, Kept):
            kept.append(event)
        elif shipped(event):
            events.append(event)
    partition = next(each.payload for each in kept if each.kind == "partition")
    assert partition is not None
    return RecordedRun(spec, tuple(events), np.asarray(partition["train"]).tolist(), _before_last(spec, kept))


def _before_last(spec: RunSpec, kept: Sequence[Kept]) -> Kept:
    """The state before the attacked round."""
    from engine.leakage.compatibility import round_number
    from engine.specs.attack import AttackSpec
    from engine.training.plan import make_plan

    round = round_number(AttackSpec(run=spec, round=ROUND), make_plan(spec))
    return next(each for each in kept if each.kind == "state" and each.round == round - 1)


class _OneState(AttackResources):
    """A home that holds one state."""

    def __init__(self, state: Kept) -> None:
        self._state = state

    def states(self, run: str) -> Sequence[Kept]:
        del run
        return (self._state,)


def _attacked(spec: AttackSpec, state: Kept) -> list[Event]:
    from engine.leakage.pictures import attack

    return list(attack(spec, _OneState(state), threads=1))


def _run_row(run: RecordedRun) -> dict[str, Any]:
    body = run.body()
    method = run.spec.method.values()
    place = {"noise": method.get("noise"), "step": method["server-step"], "seed": run.spec.seed}
    return {"name": start.NAME, "id": run.spec.id, **place, "accuracy": run.accuracy, "seconds": body["seconds"]}
