"""The forecast of many runs: ε of each, the problems, and the time that all of them take. Nothing runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.epsilon import Epsilon
from engine.errors import LeakLensError
from engine.part import Problem

if TYPE_CHECKING:
    from engine.specs.sweep import SweepPoint
    from engine.training.forecast import Forecast


@dataclass(frozen=True)
class ForecastLine:
    """The line of a point. Points with the same text share one line."""

    text: str  # the beginning of the line
    label: str  # the method, as notes below the lines name it
    columns: Mapping[str, Any]  # the same for scripts


@dataclass(frozen=True)
class SweepForecast:
    """The forecast as JSON and as text, and the first fatal problem."""

    body: Mapping[str, Any]
    lines: tuple[str, ...]
    fatal: Problem | None


def forecast_sweep(places: Mapping[SweepPoint, ForecastLine], view: str, threads: int | None) -> SweepForecast:
    """Forecast every point. A line of several seeds has their largest ε."""
    from engine.jobs.process_id import cores
    from engine.training.forecast import forecast

    threads_per_run = min(cores(), threads or (cores() if len(places) == 1 else 1))
    groups: dict[str, list[tuple[SweepPoint, Forecast]]] = {}
    for point, line in places.items():
        of_run = forecast(point.spec, precise=True, threads=threads_per_run)
        groups.setdefault(line.text, []).append((point, of_run))
    rows: list[dict[str, Any]] = []
    labels: list[str] = []
    forecasts: list[Forecast] = []
    for group in groups.values():
        line = places[group[0][0]]
        rows.append({**line.columns, **_row(group, view)})
        labels.append(line.label)
        forecasts += [of_run for _, of_run in group]
    seconds = _seconds(forecasts, max(1, cores() // threads_per_run))
    duration = "" if seconds is None else f", about {seconds:.1f} s in all"
    lines = [f"{text} {_epsilon_text(row)}" for text, row in zip(groups, rows, strict=True)]
    lines += _notes(zip(labels, rows, strict=True))
    lines.append(f"{len(places)} runs{duration}. Finished runs are reused.")
    body = {"view": view, "runs": len(places), "seconds": seconds, "rows": rows}
    return SweepForecast(body, tuple(lines), _first_fatal(forecasts))


def _seconds(forecasts: Sequence[Forecast], at_once: int) -> float | None:
    """The time of all runs, of which `at_once` run in parallel; None if one of them has no forecast."""
    times = [of_run.seconds for of_run in forecasts if of_run.seconds is not None]
    if len(times) < len(forecasts):
        return None
    return max(max(times), sum(times) / min(len(forecasts), at_once))


def _first_fatal(forecasts: Iterable[Forecast]) -> Problem | None:
    for of_run in forecasts:
        for problem in of_run.problems:
            if problem.fatal:
                return problem
    return None


def _row(group: Sequence[tuple[SweepPoint, Forecast]], view: str) -> dict[str, Any]:
    """The forecast of one line in one view: the seed without a finite ε, else the one with the largest."""
    answers: list[Epsilon] = []
    problems: dict[Problem, None] = {}
    for _, of_run in group:
        answers += [answer for answer in of_run.answers if answer.view == view]
        problems |= dict.fromkeys(of_run.problems)
    worst = max(answers, key=_epsilon_or_infinity, default=None)
    guarantee = next((of_run.guarantee for _, of_run in group if of_run.guarantee), None)
    reason = ""
    if worst:
        reason = worst.reason
    elif guarantee:
        reason = guarantee.absent.get(view, "")
    terms = worst.json() if worst else {}
    fields = ("epsilon", "unit", "adjacency", "delta", "accountant", "sampling", "bound")
    return {
        "view": view,
        **{name: terms.get(name) for name in fields},
        "reason": reason,
        "guarantee": {"status": guarantee.status, "reason": guarantee.reason} if guarantee else None,
        "problems": [{"reason": each.reason, "remedy": each.remedy, "fatal": each.fatal} for each in problems],
        "runs": [point.id for point, _ in group],
    }


def _epsilon_or_infinity(answer: Epsilon) -> float:
    return math.inf if answer.value is None else answer.value


def _epsilon_text(row: Mapping[str, Any]) -> str:
    if any(problem["fatal"] for problem in row["problems"]):
        return "cannot be run"
    return Epsilon.from_json(row["view"], row).sentence()


def _notes(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """The guarantees and the problems: each sentence once, with the labels of all lines that it is about."""
    labels_of: dict[str, dict[str, None]] = {}
    for label, row in rows:
        guarantee = row["guarantee"]
        sentences = []
        if guarantee:
            sentences.append(f"guarantee: {guarantee['status']}: {guarantee['reason']}.")
        for problem in row["problems"]:
            sentences.append(str(LeakLensError(problem["reason"], problem["remedy"])))
        for sentence in sentences:
            labels_of.setdefault(sentence, {})[label] = None
    return [f"  {', '.join(labels)}: {sentence}" for sentence, labels in labels_of.items()]
