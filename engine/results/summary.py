"""Several runs of one method in one summary: accuracy over seeds, the largest ε, the best server step."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev
from typing import Any

from engine.epsilon import Epsilon, of_report
from engine.specs.sweep import SweepPlace


@dataclass(frozen=True)
class PointResult:
    """The result of one point of a sweep."""

    point: SweepPlace
    accuracy: float
    personal: float | None
    epsilons: Mapping[str, Epsilon] = field(default_factory=dict)  # by view
    unit: str | None = None

    def score(self, own: bool = False) -> float:
        """The accuracy; with `own`, the accuracy of the personal models if the method has any."""
        return self.accuracy if not own or self.personal is None else self.personal


@dataclass(frozen=True)
class PointSummary:
    """One method at one noise over all seeds, at its best server step."""

    method: str
    noise: float | None
    step: float
    results: tuple[PointResult, ...]  # one for each seed

    @property
    def accuracies(self) -> tuple[float, ...]:
        return tuple(result.accuracy for result in self.results)

    @property
    def personals(self) -> tuple[float, ...]:
        return tuple(result.personal for result in self.results if result.personal is not None)

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
        return tuple(sorted({view for result in self.results for view in result.epsilons}))

    def epsilon(self, view: str) -> Epsilon | None:
        """ε of the seed that decides: one without a finite ε, else the largest. It differs by seed, as cohorts do.

        None if a seed has no such view.
        """
        of_seeds = [result.epsilons[view] for result in self.results if view in result.epsilons]
        return max(of_seeds, key=_value_or_infinity) if len(of_seeds) == len(self.results) else None

    def finite_epsilon(self, view: str) -> Epsilon | None:
        """The largest ε of the seeds; None if a seed has no finite one."""
        epsilon = self.epsilon(view)
        return epsilon if epsilon and epsilon.value is not None else None

    def missing_reason(self, view: str) -> str:
        """Why there is no finite ε; empty if there is one, or no reason is known."""
        epsilon = self.epsilon(view)
        return epsilon.reason if epsilon else ""

    def scores(self, own: bool = False) -> tuple[float, ...]:
        return tuple(result.score(own) for result in self.results)

    def score(self, own: bool = False) -> float:
        return fmean(self.scores(own))

    def of_seeds(self, seeds: Container[int]) -> PointSummary | None:
        """The summary of these seeds only; None if none of them finished."""
        results = tuple(result for result in self.results if result.point.seed in seeds)
        return replace(self, results=results) if results else None


def _value_or_infinity(epsilon: Epsilon) -> float:
    return math.inf if epsilon.value is None else epsilon.value


def point_result(point: SweepPlace, body: Mapping[str, Any]) -> PointResult | None:
    """The result of a point from the report of its run; None if the report has no accuracy."""
    if body.get("accuracy") is None:
        return None
    return PointResult(point, body["accuracy"], body.get("accuracy-personal"), of_report(body), body.get("unit"))


def summaries(results: Sequence[PointResult], own: bool = False) -> tuple[PointSummary, ...]:
    """One summary for each method and noise.

    Of several server steps, each summary has the one with the best mean. This is a choice made on test data.
    With `own`, the best step is that of the personal models, where a method has any.
    """
    by_step: dict[tuple[str, float | None, float], list[PointResult]] = {}
    for result in results:
        point = result.point
        by_step.setdefault((point.name, point.noise, point.step), []).append(result)
    by_noise: dict[tuple[str, float | None], list[PointSummary]] = {}
    for (method, noise, step), of_step in by_step.items():
        by_noise.setdefault((method, noise), []).append(PointSummary(method, noise, step, tuple(of_step)))
    return tuple(_best(steps, own) for steps in by_noise.values())


def common_seeds(summaries: Iterable[PointSummary]) -> set[int]:
    """The seeds that all of these summaries have."""
    seeds = [{result.point.seed for result in summary.results} for summary in summaries]
    return set.intersection(*seeds) if seeds else set()


def _best(steps: Sequence[PointSummary], own: bool) -> PointSummary:
    """The step with the best mean on the seeds that all steps finished; if there are none, the one with most seeds."""
    seeds = common_seeds(steps)

    def rank(summary: PointSummary) -> tuple[int, float, int]:
        compared = summary.of_seeds(seeds) or summary
        return compared.seeds, compared.score(own), summary.seeds

    return max(steps, key=rank)


# --- the terms of several ε ------------------------------------------------------------------------------


def shared_terms(several: Iterable[Epsilon | None], seeds: int) -> str:
    """The terms of several ε in one phrase. Where they differ, it lists every value that occurs."""
    finite = [epsilon for epsilon in several if epsilon and epsilon.value is not None]
    if not finite:
        return "none is finite"
    phrases = [
        f"per {joined(epsilon.unit for epsilon in finite)}",
        joined(epsilon.adjacency for epsilon in finite),
        f"δ = {joined(f'{epsilon.delta:.2g}' for epsilon in finite)}",
        joined(f"{epsilon.accountant} for {epsilon.sampling} sampling" for epsilon in finite),
        f"worst {finite[0].unit}{' and seed' if seeds > 1 else ''}",
        joined(epsilon.bound for epsilon in finite),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def joined(values: Iterable[str | None]) -> str:
    """Every value once, joined by `or`."""
    return " or ".join(dict.fromkeys(value for value in values if value))


def reasons(named: Sequence[tuple[str, Epsilon | None]], view: str) -> list[str]:
    """The reasons why some have no ε in this view, each reason once."""
    lines: list[str] = []
    for name, epsilon in named:
        if epsilon is None or epsilon.value is None:
            reason = (epsilon.reason if epsilon else "") or "it has no guarantee"
            lines.append(f"{name}: no ε in the {view} view: {reason}")
    return list(dict.fromkeys(lines))
