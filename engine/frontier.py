"""A frontier: methods times noises times seeds of one question. Each point is a run, so none is run twice."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import refusal

if TYPE_CHECKING:
    from engine.spec import RunSpec

MOST = 500  # points of one frontier
SHARED = (
    "clip",
    "noise-split",
    "server-step",
)  # taken from the base question, where it says them and a method has them


class Place(Protocol):
    """Where on the frontier a run stands: all that is needed to draw what it came to."""

    @property
    def method(self) -> str: ...
    @property
    def noise(self) -> float | None: ...
    @property
    def step(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...


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

    @cached_property
    def id(self) -> str:
        return self.spec.id


@dataclass(frozen=True)
class Grid:
    """What is varied."""

    methods: tuple[Mapping[str, Any], ...]  # each a name and the fields of its own
    noises: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    steps: tuple[float, ...] = ()  # of the server; none: each method's own


def points(base: RunSpec, grid: Grid) -> tuple[Point, ...]:
    """Every point once, the first seed of everything before the second."""
    if base.target_epsilon is not None:
        law = "must be left out where noises are compared: it would solve the noise anew at every point"
        raise refusal("sweep: target-epsilon", law, base.target_epsilon, "Name the noises instead")
    found: dict[str, Point] = {}
    for seed, method in product(grid.seeds, grid.methods):
        for point in _of_method(base, method, grid, seed):
            found.setdefault(point.id, point)
            if len(found) > MOST:
                law, few = f"must be at most {MOST}", "Ask for fewer noises, seeds or steps"
                raise refusal("sweep: points", law, _many(grid), few)
    if not found:
        raise refusal("sweep: points", "must be at least 1", 0, "Name a method, a noise and a seed")
    return tuple(found.values())


def _many(grid: Grid) -> int:
    """How many points were asked for, without making them."""
    from engine.methods import METHODS

    fields = [METHODS[str(method["name"])].model_fields for method in grid.methods]
    noises, steps = len(set(grid.noises)), max(1, len(set(grid.steps)))
    each = [(noises if "noise" in own else 1) * (steps if "server_step" in own else 1) for own in fields]
    return len(set(grid.seeds)) * sum(each)


def _of_method(base: RunSpec, method: Mapping[str, Any], grid: Grid, seed: int) -> Iterator[Point]:
    from engine.methods import METHODS
    from engine.spec import RunSpec

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

    point: Place
    accuracy: float
    personal: float | None
    epsilon: Mapping[str, float | None] = field(default_factory=dict)  # by view
    unit: str | None = None
    why: Mapping[str, str] = field(default_factory=dict)  # where a view has no finite ε
    adjacency: str | None = None
    delta: float | None = None
    accountant: Mapping[str, str] = field(default_factory=dict)  # by view, as the rest
    sampling: Mapping[str, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)

    def score(self, own: bool = False) -> float:
        """The accuracy, or that of the clients' own models where the method has some."""
        return self.accuracy if not own or self.personal is None else self.personal


@dataclass(frozen=True)
class Spot:
    """One method at one noise, over all seeds, at the server step that did best there."""

    method: str
    noise: float | None
    step: float
    results: tuple[Result, ...]  # one of each seed

    @property
    def accuracies(self) -> tuple[float, ...]:
        return tuple(one.accuracy for one in self.results)

    @property
    def personals(self) -> tuple[float, ...]:
        return tuple(one.personal for one in self.results if one.personal is not None)

    @property
    def mean(self) -> float:
        return fmean(self.accuracies)

    @property
    def spread(self) -> float:
        return pstdev(self.accuracies)

    @property
    def seeds(self) -> int:
        return len(self.results)

    @property
    def unit(self) -> str | None:
        return self.results[0].unit

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(sorted({view for one in self.results for view in (*one.epsilon, *one.why)}))

    @cached_property
    def epsilon(self) -> Mapping[str, float | None]:
        """Of each view the largest over the seeds: who takes part differs between them."""
        return {view: self.telling(view).epsilon.get(view) for view in self.views}

    @cached_property
    def why(self) -> Mapping[str, str]:
        """Where a view has no finite ε."""
        return {view: why for view in self.views if (why := self.telling(view).why.get(view))}

    def scores(self, own: bool = False) -> tuple[float, ...]:
        return tuple(one.score(own) for one in self.results)

    def score(self, own: bool = False) -> float:
        return fmean(self.scores(own))

    def on(self, seeds: Container[int]) -> Spot | None:
        """The same point as these seeds alone tell it."""
        some = tuple(one for one in self.results if one.point.seed in seeds)
        return replace(self, results=some) if some else None

    def telling(self, view: str) -> Result:
        """The seed that decides what is said of this view: one without a finite ε, else the one with the largest."""
        return max(self.results, key=lambda one: math.inf if (value := one.epsilon.get(view)) is None else value)

    def dearest(self, view: str) -> Result | None:
        """The seed whose ε in this view is the largest; None where one has no finite ε."""
        one = self.telling(view)
        return None if one.epsilon.get(view) is None else one


def result(point: Place, body: Mapping[str, Any]) -> Result | None:
    """From the report of its run; None where that has no accuracy."""
    if body.get("accuracy") is None:
        return None
    absent = (body.get("guarantee") or {}).get("absent") or {}
    return Result(
        point, body["accuracy"], body.get("accuracy-personal"), body.get("epsilon") or {}, body.get("unit"),
        {**absent, **(body.get("reason") or {})}, body.get("adjacency"), body.get("delta"),
        body.get("accountant") or {}, body.get("sampling") or {}, body.get("bound") or {},
    )  # fmt: skip


def spots(results: Sequence[Result], own: bool = False) -> tuple[Spot, ...]:
    """By method and noise; of several server steps the one with the best mean, which is a choice made on test data.

    `own`: the best for the clients' own models, where a method has some.
    """
    rows: dict[tuple[str, float | None, float], list[Result]] = {}
    for one in results:
        rows.setdefault((one.point.name, one.point.noise, one.point.step), []).append(one)
    tried: dict[tuple[str, float | None], list[Spot]] = {}
    for (method, noise, step), found in rows.items():
        tried.setdefault((method, noise), []).append(Spot(method, noise, step, tuple(found)))
    return tuple(_best(steps, own) for steps in tried.values())


def common(several: Iterable[Spot]) -> set[int]:
    """The seeds that all of them have."""
    held = [{one.point.seed for one in spot.results} for spot in several]
    return set.intersection(*held) if held else set()


def _best(steps: Sequence[Spot], own: bool) -> Spot:
    """The step with the best mean on the seeds that all of them finished; where there is none, that with most."""
    seeds = common(steps)

    def rank(spot: Spot) -> tuple[int, float, int]:
        there = spot.on(seeds) or spot
        return there.seeds, there.score(own), spot.seeds

    return max(steps, key=rank)
