"""A frontier: methods times noises times seeds of one question. Each point is a run, so none is run twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean, pstdev
from typing import Any

from engine.errors import refusal
from engine.methods import METHODS
from engine.spec import RunSpec

MOST = 500  # points of one frontier
SHARED = (
    "clip",
    "noise-split",
    "server-step",
)  # taken from the base question, where it says them and a method has them


@dataclass(frozen=True)
class Point:
    """One place on the frontier, and the run that finds out how well it does."""

    method: str
    noise: float | None  # None: this method has none
    step: float  # of the server
    seed: int
    spec: RunSpec
    label: str = ""  # tells two versions of one method apart

    @property
    def name(self) -> str:
        return self.label or self.method


@dataclass(frozen=True)
class Grid:
    """What is varied."""

    methods: tuple[Mapping[str, Any], ...]  # each a name and the fields of its own
    noises: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    steps: tuple[float, ...] = ()  # of the server; none: each method's own


def points(base: RunSpec, grid: Grid) -> tuple[Point, ...]:
    """Every point once, the first seed of everything before the second."""
    found: dict[str, Point] = {}
    for seed, method in product(grid.seeds, grid.methods):
        for point in _of_method(base, method, grid, seed):
            found.setdefault(point.spec.id, point)
    if not found:
        raise refusal("sweep: points", "must be at least 1", 0, "Name a method, a noise and a seed")
    if len(found) > MOST:
        raise refusal("sweep: points", f"must be at most {MOST}", len(found), "Ask for fewer noises, seeds or steps")
    return tuple(found.values())


def _of_method(base: RunSpec, method: Mapping[str, Any], grid: Grid, seed: int) -> Iterator[Point]:
    part = METHODS[str(method["name"])]
    fields = {field.alias or name for name, field in part.model_fields.items()}
    asked = base.canonical()
    usual = METHODS.dump(type(base.method)())
    own = {name: value for name, value in asked["method"].items() if name in fields and value != usual.get(name)}
    if part.name != base.method.name:
        own = _legal_split(part, {name: value for name, value in own.items() if name in SHARED})
    noisy = "noise" in fields
    for noise in grid.noises if noisy else (None,):
        for step in grid.steps or (None,):
            chosen = {**own, **method, **({"noise": noise} if noisy else {})}
            if step is not None and "server-step" in fields:
                chosen["server-step"] = step
            spec = RunSpec(**{**asked, "method": chosen, "seed": seed})
            yield Point(part.name, noise, float(getattr(spec.method, "server_step", 1.0)), seed, spec)


def _legal_split(part: Any, own: dict[str, Any]) -> dict[str, Any]:
    """Another method keeps its own noise split where it does not know that of the question."""
    known = part.model_json_schema(by_alias=True)["properties"].get("noise-split", {}).get("enum", ())
    return {name: value for name, value in own.items() if name != "noise-split" or value in known}


@dataclass(frozen=True)
class Result:
    """What one point came to."""

    point: Point
    accuracy: float
    personal: float | None
    epsilon: Mapping[str, float | None] = field(default_factory=dict)  # by view
    unit: str | None = None
    why: Mapping[str, str] = field(default_factory=dict)  # where a view has no finite ε


@dataclass(frozen=True)
class Spot:
    """One method at one noise, over all seeds, at the server step that did best there."""

    method: str
    noise: float | None
    step: float
    accuracies: tuple[float, ...]
    personals: tuple[float, ...]
    epsilon: Mapping[str, float | None]
    unit: str | None
    why: Mapping[str, str]

    @property
    def mean(self) -> float:
        return fmean(self.accuracies)

    @property
    def spread(self) -> float:
        return pstdev(self.accuracies)


def result(point: Point, body: Mapping[str, Any]) -> Result | None:
    """From the report of its run; None where that has no accuracy."""
    if body.get("accuracy") is None:
        return None
    own = body.get("accuracy-personal")
    return Result(point, body["accuracy"], own, body.get("epsilon") or {}, body.get("unit"), body.get("reason") or {})


def spots(results: Sequence[Result]) -> tuple[Spot, ...]:
    """By method and noise; of several server steps the one with the best mean, which is a choice made on test data."""
    rows: dict[tuple[str, float | None, float], list[Result]] = {}
    for one in results:
        rows.setdefault((one.point.name, one.point.noise, one.point.step), []).append(one)
    best: dict[tuple[str, float | None], Spot] = {}
    for (method, noise, step), found in rows.items():
        personals = tuple(one.personal for one in found if one.personal is not None)
        spot = Spot(
            method,
            noise,
            step,
            tuple(one.accuracy for one in found),
            personals,
            worst(found),
            found[0].unit,
            found[0].why,
        )
        held = best.get((method, noise))
        if held is None or (len(spot.accuracies), spot.mean) > (len(held.accuracies), held.mean):
            best[method, noise] = spot
    return tuple(best.values())


def worst(found: Sequence[Result]) -> dict[str, float | None]:
    """ε of each view, the largest over the seeds: who takes part differs between them."""
    views = {view for one in found for view in one.epsilon}
    answers = {view: [one.epsilon.get(view) for one in found] for view in sorted(views)}
    return {
        view: None if any(value is None for value in values) else max(value for value in values if value is not None)
        for view, values in answers.items()
    }
