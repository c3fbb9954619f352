"""A frontier: methods times noises times seeds of one question. Each point is a run, so none is run twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import refusal

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

MOST_POINTS = 500  # points of one frontier
SHARED = (
    "clip",
    "noise-split",
    "server-step",
)  # taken from the base question, where it says them and a method has them


class SweepPlace(Protocol):
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
class SweepPoint:
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
class SweepGrid:
    """What is varied."""

    methods: tuple[Mapping[str, Any], ...]  # each a name and the fields of its own
    noises: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    steps: tuple[float, ...] = ()  # of the server; none: each method's own


def points(base: RunSpec, grid: SweepGrid) -> tuple[SweepPoint, ...]:
    """Every point once, the first seed of everything before the second."""
    if base.target_epsilon is not None:
        law = "must be left out where noises are compared: it would solve the noise anew at every point"
        raise refusal("sweep: target-epsilon", law, base.target_epsilon, "Name the noises instead")
    found: dict[str, SweepPoint] = {}
    for seed, method in product(grid.seeds, grid.methods):
        for point in _of_method(base, method, grid, seed):
            found.setdefault(point.id, point)
            if len(found) > MOST_POINTS:
                law, few = f"must be at most {MOST_POINTS}", "Ask for fewer noises, seeds or steps"
                raise refusal("sweep: points", law, _many(grid), few)
    if not found:
        raise refusal("sweep: points", "must be at least 1", 0, "Name a method, a noise and a seed")
    return tuple(found.values())


def _many(grid: SweepGrid) -> int:
    """How many points were asked for, without making them."""
    from engine.methods import METHODS

    fields = [METHODS[str(method["name"])].model_fields for method in grid.methods]
    noises, steps = len(set(grid.noises)), max(1, len(set(grid.steps)))
    each = [(noises if "noise" in own else 1) * (steps if "server_step" in own else 1) for own in fields]
    return len(set(grid.seeds)) * sum(each)


def _of_method(base: RunSpec, method: Mapping[str, Any], grid: SweepGrid, seed: int) -> Iterator[SweepPoint]:
    from engine.methods import METHODS
    from engine.specs.run import RunSpec

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
            yield SweepPoint(part.name, noise, float(getattr(spec.method, "server_step", 1.0)), seed, spec)


def _legal_split(part: Any, own: dict[str, Any]) -> dict[str, Any]:
    """Another method keeps its own noise split where it does not know that of the question."""
    known = part.model_json_schema(by_alias=True)["properties"].get("noise-split", {}).get("enum", ())
    return {name: value for name, value in own.items() if name != "noise-split" or value in known}
