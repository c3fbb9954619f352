"""Many runs before the first of them: what each will spend, what stands in the way, and how long all will take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import LeakLensError
from engine.part import Problem
from engine.results.report import epsilon_words

if TYPE_CHECKING:
    from engine.specs.sweep import SweepPoint
    from engine.training.forecast import Forecast

Where = tuple[str, str, Mapping[str, Any]]  # of a line: what it begins with, whose it is, and the same for scripts


@dataclass(frozen=True)
class SweepForecast:
    """The same for scripts and for people, and what stops any of them."""

    body: Mapping[str, Any]
    lines: tuple[str, ...]
    fatal: Problem | None


def forecast_sweep(places: Mapping[SweepPoint, Where], view: str, threads: int | None) -> SweepForecast:
    """A line for each place: its ε, over several seeds the largest, and what stands in the way; nothing is run."""
    from engine.jobs.process_id import cores
    from engine.training.forecast import forecast

    each = min(cores(), threads or (cores() if len(places) == 1 else 1))
    lines: dict[str, list[tuple[SweepPoint, Forecast]]] = {}
    for point, (words, _, _) in places.items():
        lines.setdefault(words, []).append((point, forecast(point.spec, precise=True, threads=each)))
    rows = [{**places[some[0][0]][2], **_foretold(some, view)} for some in lines.values()]
    found = [one for some in lines.values() for _, one in some]
    times = [one.seconds for one in found if one.seconds is not None]
    at_once = min(len(places), max(1, cores() // each))
    seconds = max(max(times), sum(times) / at_once) if len(times) == len(found) else None
    lasts = "" if seconds is None else f", about {seconds:.1f} s in all"
    said = (
        *(f"{words} {_forecast_words(row)}" for words, row in zip(lines, rows, strict=True)),
        *_notes((places[some[0][0]][1], row) for some, row in zip(lines.values(), rows, strict=True)),
        f"{len(places)} runs{lasts}; what is known already is not run again.",
    )
    fatal = next((problem for one in found for problem in one.problems if problem.fatal), None)
    return SweepForecast({"view": view, "runs": len(places), "seconds": seconds, "rows": rows}, said, fatal)


def _foretold(some: Sequence[tuple[SweepPoint, Forecast]], view: str) -> dict[str, Any]:
    """What the runs of one line will say of one view; the seed counts that has no finite ε, else the largest."""
    found = [one for _, one in some]
    bills = [answer for one in found for answer in one.answers if answer.view == view]
    dearest = max(bills, key=lambda one: math.inf if one.epsilon is None else one.epsilon, default=None)
    promise = next((one.guarantee for one in found if one.guarantee), None)
    reason = dearest.reason if dearest else promise.absent.get(view, "") if promise else ""
    fields = ("epsilon", "unit", "adjacency", "delta", "accountant", "sampling", "bound")
    problems = {problem: None for one in found for problem in one.problems}
    return {
        "view": view,
        **{name: getattr(dearest, name, None) for name in fields},
        "reason": reason,
        "guarantee": {"status": promise.status, "reason": promise.reason} if promise else None,
        "problems": [{"reason": one.reason, "remedy": one.remedy, "fatal": one.fatal} for one in problems],
        "runs": [point.id for point, _ in some],
    }


def _forecast_words(row: Mapping[str, Any]) -> str:
    if any(one["fatal"] for one in row["problems"]):
        return "cannot be run"
    terms = ("unit", "adjacency", "delta", "accountant", "reason", "bound")
    return epsilon_words(row["view"], row["epsilon"], *(row[name] for name in terms))


def _notes(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """What is promised, and what stands in the way: each sentence once, with everybody whom it is about."""
    said: dict[str, dict[str, None]] = {}
    for who, row in rows:
        promise = row["guarantee"]
        sentences = [f"guarantee: {promise['status']}: {promise['reason']}."] if promise else []
        for sentence in (*sentences, *(str(LeakLensError(one["reason"], one["remedy"])) for one in row["problems"])):
            said.setdefault(sentence, {})[who] = None
    return [f"  {', '.join(names)}: {sentence}" for sentence, names in said.items()]
