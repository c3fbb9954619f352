"""What several runs of one method amount to: accuracy over seeds, the largest ε, the best server step."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, pstdev
from typing import Any

from engine.specs.sweep import SweepPlace


@dataclass(frozen=True)
class PointResult:
    """What one point came to."""

    point: SweepPlace
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
class PointSummary:
    """One method at one noise, over all seeds, at the server step that did best there."""

    method: str
    noise: float | None
    step: float
    results: tuple[PointResult, ...]  # one of each seed

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

    def on(self, seeds: Container[int]) -> PointSummary | None:
        """The same point as these seeds alone tell it."""
        some = tuple(one for one in self.results if one.point.seed in seeds)
        return replace(self, results=some) if some else None

    def telling(self, view: str) -> PointResult:
        """The seed that decides what is said of this view: one without a finite ε, else the one with the largest."""
        return max(self.results, key=lambda one: math.inf if (value := one.epsilon.get(view)) is None else value)

    def dearest(self, view: str) -> PointResult | None:
        """The seed whose ε in this view is the largest; None where one has no finite ε."""
        one = self.telling(view)
        return None if one.epsilon.get(view) is None else one


def point_result(point: SweepPlace, body: Mapping[str, Any]) -> PointResult | None:
    """From the report of its run; None where that has no accuracy."""
    if body.get("accuracy") is None:
        return None
    absent = (body.get("guarantee") or {}).get("absent") or {}
    return PointResult(
        point, body["accuracy"], body.get("accuracy-personal"), body.get("epsilon") or {}, body.get("unit"),
        {**absent, **(body.get("reason") or {})}, body.get("adjacency"), body.get("delta"),
        body.get("accountant") or {}, body.get("sampling") or {}, body.get("bound") or {},
    )  # fmt: skip


def summaries(results: Sequence[PointResult], own: bool = False) -> tuple[PointSummary, ...]:
    """By method and noise; of several server steps the one with the best mean, which is a choice made on test data.

    `own`: the best for the clients' own models, where a method has some.
    """
    rows: dict[tuple[str, float | None, float], list[PointResult]] = {}
    for one in results:
        rows.setdefault((one.point.name, one.point.noise, one.point.step), []).append(one)
    tried: dict[tuple[str, float | None], list[PointSummary]] = {}
    for (method, noise, step), found in rows.items():
        tried.setdefault((method, noise), []).append(PointSummary(method, noise, step, tuple(found)))
    return tuple(_best(steps, own) for steps in tried.values())


def common(several: Iterable[PointSummary]) -> set[int]:
    """The seeds that all of them have."""
    held = [{one.point.seed for one in spot.results} for spot in several]
    return set.intersection(*held) if held else set()


def _best(steps: Sequence[PointSummary], own: bool) -> PointSummary:
    """The step with the best mean on the seeds that all of them finished; where there is none, that with most."""
    seeds = common(steps)

    def rank(spot: PointSummary) -> tuple[int, float, int]:
        there = spot.on(seeds) or spot
        return there.seeds, there.score(own), spot.seeds

    return max(steps, key=rank)


# --- ε of several seeds, with the terms it stands on -------------------------------------------------------

EpsilonTerms = Mapping[str, Any]


def epsilon_terms(spot: PointSummary, view: str) -> dict[str, Any]:
    """What stands beside the ε of one view; where a seed has none, why."""
    one = spot.telling(view)
    return {
        "epsilon": one.epsilon.get(view),
        "reason": one.why.get(view, ""),
        "unit": one.unit,
        "adjacency": one.adjacency,
        "delta": one.delta,
        "accountant": one.accountant.get(view),
        "sampling": one.sampling.get(view),
        "bound": one.bound.get(view, ""),
    }


def shared_terms(bills: Iterable[EpsilonTerms], seeds: int) -> str:
    """What all of them stand on, said once; where they differ, everything that occurs."""
    told = [one for one in bills if one["epsilon"] is not None]
    if not told:
        return "none is finite"
    said = [f"per {each(one['unit'] for one in told)}", each(one["adjacency"] for one in told)]
    deltas = each(f"{one['delta']:.2g}" for one in told)
    said += [f"δ = {deltas}", each(f"{one['accountant']} for {one['sampling']} sampling" for one in told)]
    said += [f"worst {told[0]['unit']}{' and seed' if seeds > 1 else ''}", each(one["bound"] for one in told)]
    return ", ".join(filter(None, said))


def each(values: Iterable[str | None]) -> str:
    return " or ".join(dict.fromkeys(filter(None, values)))


def reasons(named: Sequence[tuple[str, EpsilonTerms]], view: str) -> list[str]:
    """Why something has no ε there, each reason once."""
    missing = ((name, one["reason"] or "it promises none") for name, one in named if one["epsilon"] is None)
    return list(dict.fromkeys(f"{name}: no ε in the {view} view: {why}" for name, why in missing))
