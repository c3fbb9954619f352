"""Several runs of one method in one summary: accuracy over seeds, the largest ε, the best server step."""

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
    """The result of one point of a sweep."""

    point: SweepPlace
    accuracy: float
    personal: float | None
    epsilon: Mapping[str, float | None] = field(default_factory=dict)  # by view
    unit: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)  # by view, where it has no finite ε
    adjacency: str | None = None
    delta: float | None = None
    accountant: Mapping[str, str] = field(default_factory=dict)  # by view, like the two below
    sampling: Mapping[str, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)

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
        return tuple(sorted({view for result in self.results for view in (*result.epsilon, *result.reasons)}))

    @cached_property
    def epsilon(self) -> Mapping[str, float | None]:
        """By view, the largest ε over the seeds. It differs because each seed draws other clients."""
        return {view: self.deciding_result(view).epsilon.get(view) for view in self.views}

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """By view, why it has no finite ε."""
        reasons = {view: self.deciding_result(view).reasons.get(view, "") for view in self.views}
        return {view: reason for view, reason in reasons.items() if reason}

    def scores(self, own: bool = False) -> tuple[float, ...]:
        return tuple(result.score(own) for result in self.results)

    def score(self, own: bool = False) -> float:
        return fmean(self.scores(own))

    def of_seeds(self, seeds: Container[int]) -> PointSummary | None:
        """The summary of these seeds only; None if none of them finished."""
        results = tuple(result for result in self.results if result.point.seed in seeds)
        return replace(self, results=results) if results else None

    def deciding_result(self, view: str) -> PointResult:
        """The seed that decides the ε of this view: one without a finite ε, else the one with the largest."""

        def epsilon(result: PointResult) -> float:
            value = result.epsilon.get(view)
            return math.inf if value is None else value

        return max(self.results, key=epsilon)

    def largest_epsilon(self, view: str) -> PointResult | None:
        """The seed with the largest ε in this view; None if a seed has no finite ε."""
        result = self.deciding_result(view)
        return None if result.epsilon.get(view) is None else result


def point_result(point: SweepPlace, body: Mapping[str, Any]) -> PointResult | None:
    """The result of a point from the report of its run; None if the report has no accuracy."""
    if body.get("accuracy") is None:
        return None
    absent = (body.get("guarantee") or {}).get("absent") or {}
    return PointResult(
        point=point,
        accuracy=body["accuracy"],
        personal=body.get("accuracy-personal"),
        epsilon=body.get("epsilon") or {},
        unit=body.get("unit"),
        reasons={**absent, **(body.get("reason") or {})},
        adjacency=body.get("adjacency"),
        delta=body.get("delta"),
        accountant=body.get("accountant") or {},
        sampling=body.get("sampling") or {},
        bound=body.get("bound") or {},
    )


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


# --- ε over several seeds, with its terms ------------------------------------------------------------------

EpsilonTerms = Mapping[str, Any]


def epsilon_terms(summary: PointSummary, view: str) -> dict[str, Any]:
    """The ε of one view with its terms; if a seed has none, the reason."""
    result = summary.deciding_result(view)
    return {
        "epsilon": result.epsilon.get(view),
        "reason": result.reasons.get(view, ""),
        "unit": result.unit,
        "adjacency": result.adjacency,
        "delta": result.delta,
        "accountant": result.accountant.get(view),
        "sampling": result.sampling.get(view),
        "bound": result.bound.get(view, ""),
    }


def shared_terms(entries: Iterable[EpsilonTerms], seeds: int) -> str:
    """The terms of several ε in one phrase. Where they differ, it lists every value that occurs."""
    finite = [terms for terms in entries if terms["epsilon"] is not None]
    if not finite:
        return "none is finite"
    units = joined(terms["unit"] for terms in finite)
    deltas = joined(f"{terms['delta']:.2g}" for terms in finite)
    phrases = [
        f"per {units}",
        joined(terms["adjacency"] for terms in finite),
        f"δ = {deltas}",
        joined(f"{terms['accountant']} for {terms['sampling']} sampling" for terms in finite),
        f"worst {finite[0]['unit']}{' and seed' if seeds > 1 else ''}",
        joined(terms["bound"] for terms in finite),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def joined(values: Iterable[str | None]) -> str:
    """Every value once, joined by `or`."""
    return " or ".join(dict.fromkeys(value for value in values if value))


def reasons(named: Sequence[tuple[str, EpsilonTerms]], view: str) -> list[str]:
    """The reasons why some have no ε in this view, each reason once."""
    lines: list[str] = []
    for name, terms in named:
        if terms["epsilon"] is None:
            reason = terms["reason"] or "it has no guarantee"
            lines.append(f"{name}: no ε in the {view} view: {reason}")
    return list(dict.fromkeys(lines))
