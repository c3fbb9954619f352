"""Reads the points of an exported sweep, from the store or from the stored example."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.export.grid_content import STORED, distinct
from app.texts import attacks as attack_texts
from app.texts import numbers
from engine.capabilities import HasNoise
from engine.errors import BadInput, UnknownName, shown
from engine.events import Started
from engine.examples import sweep as sweep_example
from engine.examples.sweep import StoredPoint
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.results.report import report
from engine.results.summary import PointResult, point_result
from engine.specs import attack_grid
from engine.specs.sweep import MOST_POINTS, SweepPoint, server_step_of

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

MOST = MOST_POINTS  # runs on one page
VARIED = ("noise", "server-step")  # fields of a method that a sweep varies
PROMISE = ("target-epsilon", "budget", "view", "delta", "honest-share")  # fields of a run that decide its ε
RULE = "export: sweep: runs must differ only in their method, noise, server step and seed, and these also differ in "


@dataclass(frozen=True)
class FoundRun:
    """One run of a sweep, from the store or from the example."""

    id: str
    spec: RunSpec
    status: str
    body: Mapping[str, Any] | None = None  # its report
    example: PointResult | None = None
    made: str = ""  # the day of an example
    noise: float | None = None  # that the run used, which the engine solved if there is a target ε

    @property
    def finished(self) -> bool:
        return self.status in ("finished", STORED)


@dataclass(frozen=True)
class ExportedSweep:
    """The runs of a sweep, and the results of those that finished."""

    runs: tuple[FoundRun, ...]
    results: tuple[PointResult, ...]
    titles: Mapping[str, str]  # by the name of a point: its method, or a version of it
    headless: tuple[str, ...]  # methods in which no client uploads its last layer

    @property
    def several_steps(self) -> bool:
        """Whether a method has results with more than one server step at the same noise."""
        places = [result.point for result in self.results]
        with_step = {(place.name, place.noise, place.step) for place in places}
        return len(with_step) > len({(place.name, place.noise) for place in places})


def find(
    store: Store, ids: Iterable[str], may_see: Callable[[ListedRun], bool], deleted: bool = False
) -> tuple[FoundRun, ...]:
    """These runs in their order, each once. Unknown ones are refused, or left out where they may be `deleted`."""
    example = sweep_example.sweep_example()
    results = {result.point.id: result for result in example.results} if example else {}
    specs = {point.id: point.spec for point in _example_points()} if results else {}
    made = example.made if example else ""
    runs = []
    for id in dict.fromkeys(ids):
        listed = _listed(store, id, may_see)
        if id in results and id in specs and (listed is None or listed.status != "finished"):
            runs.append(FoundRun(id, specs[id], STORED, None, results[id], made))
        elif listed:
            runs.append(_found(store, listed))
        elif not deleted:
            raise UnknownName(f"export: there is no run {shown(id)} here")
    if not any(run.finished for run in runs):
        raise BadInput("export: sweep: at least one run must have finished, and none has", "Wait for the first one")
    return tuple(runs)


def _listed(store: Store, id: str, may_see: Callable[[ListedRun], bool]) -> ListedRun | None:
    """A run that this visitor may see; None for any other, and for attacks."""
    try:
        listed = store.run(id)
    except UnknownName:
        return None
    return listed if may_see(listed) and "attack" not in listed.spec else None


def _found(store: Store, listed: ListedRun) -> FoundRun:
    from engine.specs.run import RunSpec

    spec = RunSpec(**listed.spec)
    if listed.status != "finished":
        return FoundRun(listed.id, spec, listed.status)
    events = [event for _, event in store.events(listed.id)]
    started = next((event for event in events if isinstance(event, Started)), None)
    noise = started.facts.get("noise") if started else None
    return FoundRun(listed.id, spec, listed.status, report(events), noise=noise)


def _example_points() -> Sequence[SweepPoint]:
    return sweep_example.requested_points()


def sweep(runs: Sequence[FoundRun]) -> ExportedSweep:
    """The runs as points of one sweep. Refused if they differ in more than a sweep varies."""
    differing = _differing([run.spec for run in runs])
    if differing:
        raise BadInput(f"{RULE}{numbers.joined(differing)}", "Export them one by one")
    places = [_place(run) for run in runs]
    collide = max(Counter((place.method, place.noise, place.step, place.seed) for place in places).values()) > 1
    names = {run.id: _version(run.spec) if collide else run.spec.method.name for run in runs}
    titles = {names[run.id]: _title(run.spec) for run in runs}
    if collide:
        fields = {names[run.id]: _own_fields(run.spec) for run in runs}
        titles = distinct(titles, fields)
    results = []
    for run, place in zip(runs, places, strict=True):
        result = _result(run, replace(place, name=names[run.id]))
        if result:
            results.append(result)
    headless = dict.fromkeys(run.spec.method.name for run in runs if run.spec.method.headless)
    return ExportedSweep(tuple(runs), tuple(results), titles, tuple(headless))


def _title(spec: RunSpec) -> str:
    title = type(spec.method).title
    return title if spec.target_epsilon is None else attack_texts.at_budget(title, spec.target_epsilon)


def _differing(specs: Sequence[RunSpec]) -> list[str]:
    """The settings in which the runs differ, although a sweep does not vary them."""
    bodies = [spec.canonical() for spec in specs]
    left_out = (*attack_grid.NOT_IN_BASELINE, "seed")
    names = dict.fromkeys(name for body in bodies for name in body if name not in left_out)
    differing = [name for name in names if len({json.dumps(body.get(name)) for body in bodies}) > 1]
    # Only runs that protect the same unit share the fields of a promise: a baseline has none, and δ differs by unit.
    units: dict[str, list[dict[str, Any]]] = {}
    for spec, body in zip(specs, bodies, strict=True):
        noisy = isinstance(spec.method, HasNoise)
        units.setdefault(f"{spec.method.unit()}" if noisy else "", []).append(body)
    for name in PROMISE:
        if any(len({body.get(name) for body in of_unit}) > 1 for of_unit in units.values()):
            differing.append(name)
    return differing


def _own_fields(spec: RunSpec) -> dict[str, Any]:
    """The fields of the method that a sweep does not vary."""
    return {name: value for name, value in spec.method.values().items() if name not in VARIED}


def _version(spec: RunSpec) -> str:
    """A name that tells apart two versions of one method."""
    return json.dumps(_own_fields(spec), sort_keys=True)


def _place(run: FoundRun) -> StoredPoint:
    method = run.spec.method
    noise = method.noise_level if isinstance(method, HasNoise) else None
    if run.spec.target_epsilon is not None and run.noise is not None:
        noise = float(f"{run.noise:.3g}")  # the seeds of one point differ in digits after these
    return StoredPoint(method.name, noise, server_step_of(method), run.spec.seed, method.name, run.id)


def _result(run: FoundRun, place: StoredPoint) -> PointResult | None:
    if run.example:
        return replace(run.example, point=place)
    return point_result(place, run.body) if run.body else None
