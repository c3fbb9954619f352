"""A sweep: methods times noises times seeds over one base spec. Each point is a run, so none is computed twice."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from engine.capabilities import HasNoise, HasServerStep
from engine.errors import refusal

if TYPE_CHECKING:
    from engine.methods import Method
    from engine.specs.run import RunSpec

MOST_POINTS = 500  # of one sweep
SHARED = ("clip", "noise-split", "server-step")  # a method takes these from the base spec, if both have them


class SweepPlace(Protocol):
    """The position of a run in a sweep: everything that is needed to draw its result."""

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
class SweepPoint:
    """One position in a sweep, and the spec of its run."""

    method: str
    noise: float | None  # None: the method has no noise
    step: float  # the step size of the server
    seed: int
    spec: RunSpec
    label: str = ""  # distinguishes two versions of one method

    @property
    def name(self) -> str:
        return self.label or self.method

    @cached_property
    def id(self) -> str:
        return self.spec.id


@dataclass(frozen=True)
class SweepGrid:
    """The values that a sweep varies."""

    methods: tuple[Mapping[str, Any], ...]  # each with its name and its own fields
    noises: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    steps: tuple[float, ...] = ()  # of the server; none: the step of each method


def points(base: RunSpec, grid: SweepGrid) -> tuple[SweepPoint, ...]:
    """Every point once: all points of the first seed, then all of the second."""
    if base.target_epsilon is not None:
        rule = "must be left out where noises are compared: it would solve the noise again at every point"
        raise refusal("sweep: target-epsilon", rule, base.target_epsilon, "Name the noises instead")
    _refuse_mixed_units(grid)
    by_id: dict[str, SweepPoint] = {}
    for seed, method in product(grid.seeds, grid.methods):
        for point in _points_of_method(base, method, grid, seed):
            by_id.setdefault(point.id, point)
            if len(by_id) > MOST_POINTS:
                rule = f"must be at most {MOST_POINTS}"
                raise refusal("sweep: points", rule, _count(grid), "Choose fewer noises, seeds or steps")
    if not by_id:
        raise refusal("sweep: points", "must be at least 1", 0, "Name a method, a noise and a seed")
    return tuple(by_id.values())


def _count(grid: SweepGrid) -> int:
    """The number of points of a grid, without their specs."""
    from engine.methods import METHODS

    noises = len(set(grid.noises))
    steps = max(1, len(set(grid.steps)))
    count = 0
    for method in grid.methods:
        part = METHODS[str(method["name"])]
        count += (noises if issubclass(part, HasNoise) else 1) * (steps if issubclass(part, HasServerStep) else 1)
    return len(set(grid.seeds)) * count


def _refuse_mixed_units(grid: SweepGrid) -> None:
    """A noise of one unit says nothing about a noise of another, so they never share an axis."""
    from engine.methods import METHODS

    names_by_unit: dict[str, list[str]] = {}
    for method in grid.methods:
        part = METHODS[str(method["name"])]
        if issubclass(part, HasNoise):
            names_by_unit.setdefault(part.noise_unit, []).append(part.name)
    if len(names_by_unit) > 1:
        units = "; ".join(f"{unit}: {', '.join(names)}" for unit, names in names_by_unit.items())
        raise refusal("sweep: methods", "must count their noise in one unit", units, "Compare them one unit at a time")


def _points_of_method(base: RunSpec, method: Mapping[str, Any], grid: SweepGrid, seed: int) -> Iterator[SweepPoint]:
    from engine.methods import METHODS
    from engine.specs.run import RunSpec

    part = METHODS[str(method["name"])]
    names = {field.alias or name for name, field in part.model_fields.items()}
    fields_of_base = base.identity()
    shared = _shared_fields(base, part, names)
    noise_name = part.noise_name() if issubclass(part, HasNoise) else ""
    noises = grid.noises if noise_name else (None,)
    for noise, step in product(noises, grid.steps or (None,)):
        fields = {**shared, **method}
        if noise is not None:
            fields[noise_name] = noise
        if step is not None and issubclass(part, HasServerStep):
            fields["server-step"] = step
        spec = RunSpec(**{**fields_of_base, "method": fields, "seed": seed})
        yield SweepPoint(part.name, noise, server_step_of(spec.method), seed, spec)


def server_step_of(method: Method) -> float:
    """The step of the server; 1 for a method without one."""
    return method.server_step if isinstance(method, HasServerStep) else 1.0


def _shared_fields(base: RunSpec, part: type[Method], names: Container[str]) -> dict[str, Any]:
    """The fields that a method takes from the base spec: all that differ from their default, or those in SHARED."""
    from engine.methods import METHODS

    defaults = METHODS.dump(type(base.method)())
    fields: dict[str, Any] = {}
    for name, value in base.identity()["method"].items():
        if name in names and value != defaults.get(name):
            fields[name] = value
    if part.name == base.method.name:
        return fields
    return _legal_split(part, {name: value for name, value in fields.items() if name in SHARED})


def _legal_split(part: type[Method], fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out a noise split that this method does not have; it then uses its own default."""
    splits = part.model_json_schema(by_alias=True)["properties"].get("noise-split", {}).get("enum", ())
    return {name: value for name, value in fields.items() if name != "noise-split" or value in splits}
