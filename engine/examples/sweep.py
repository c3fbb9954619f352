"""The finished sweep that ships with LeakLens: several methods at several noises, each point a finished run.

assets/frontiers/request.json has the base spec and the values to vary; results.json has the result of each point.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.environment import ROOT
from engine.errors import Damaged, LeakLensError, NewerVersion
from engine.examples import checksums
from engine.examples.files import reason_of
from engine.examples.publishing import as_json, publish, significant
from engine.results.report import report
from engine.results.summary import PointResult, point_result
from engine.specs.sweep import SweepGrid, points

if TYPE_CHECKING:
    from engine.specs.sweep import SweepPoint

REQUEST_FILE = ROOT / "assets" / "frontiers" / "request.json"
RESULT_FILE = ROOT / "assets" / "frontiers" / "results.json"
FORMAT = 1
NAME = "frontier"  # for the command `gallery`
DIGITS = 6  # significant digits of every number
OWN = ("accuracy", "accuracy-personal", "epsilon", "seconds")  # values that each point has for itself
TERMS = ("unit", "adjacency", "delta", "accountant", "sampling", "bound", "reason", "absent")
AGAIN = f"Make it again: python3 -m engine gallery {NAME}"


@dataclass(frozen=True)
class StoredPoint:
    """The position of a stored point in the sweep. It has no spec, which would load torch."""

    method: str
    noise: float | None
    step: float
    seed: int
    name: str
    id: str


@dataclass(frozen=True)
class SweepExample:
    """The finished sweep that ships."""

    made: str  # the day, as 2025-12-31
    seconds: float  # of all runs together
    titles: Mapping[str, str]  # of the methods
    headless: tuple[str, ...]  # methods without a shared last layer
    results: tuple[PointResult, ...]


def load_error() -> LeakLensError | None:
    """Why the sweep cannot be read."""
    try:
        read(RESULT_FILE)
    except LeakLensError as error:
        return error
    return None


def sweep_example() -> SweepExample | None:
    """The sweep of a first visit; None where it cannot be read."""
    try:
        return read(RESULT_FILE)
    except LeakLensError:
        return None


@cache
def read(path: Path) -> SweepExample:
    """The sweep in one file."""
    checksums.require_published(path.parent.parent, f"frontiers/{path.name}", AGAIN)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        results = tuple(_result(point, body["terms"]) for point in body["points"])
        seconds = sum(float(point["seconds"]) for point in body["points"])
        return SweepExample(str(body["made"]), seconds, dict(body["titles"]), tuple(body["headless"]), results)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {reason_of(error)}", AGAIN) from None


def _result(body: Mapping[str, Any], terms: Sequence[Mapping[str, Any]]) -> PointResult:
    values = dict(terms[body["terms"]])
    for name in OWN:
        values[name] = body[name]
    method = str(body["method"])
    point = StoredPoint(
        method=method,
        noise=None if body["noise"] is None else float(body["noise"]),
        step=float(body["step"]),
        seed=body["seed"],
        name=method,
        id=str(body["id"]),
    )
    result = point_result(point, {**values, "guarantee": {"absent": values["absent"]}})
    if result is None:
        raise ValueError(f"{point.id} has no accuracy")
    return result


# --- making the file ---------------------------------------------------------------------------------------


def requested_points() -> tuple[SweepPoint, ...]:
    """The points of the sweep, with their specs."""
    from engine.specs.run import RunSpec

    try:
        request = json.loads(REQUEST_FILE.read_text(encoding="utf-8"))
        base = RunSpec(**request["run"])
        methods = tuple({"name": method} if isinstance(method, str) else method for method in request["methods"])
        seeds = tuple(range(base.seed, base.seed + int(request["seeds"])))
        return points(base, SweepGrid(methods, tuple(request["noises"]), seeds, tuple(request["steps"])))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"gallery: preset {REQUEST_FILE.name}: {error}", "Download LeakLens again") from None


def make(threads: int) -> list[dict[str, Any]]:
    """Run all points and write their results; return a row for each, as the command `gallery` prints it."""
    from engine.training.loop import run

    sweep = requested_points()
    terms: list[dict[str, Any]] = []  # many points share theirs
    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for point in sweep:
        body = report(run(point.spec, threads=threads))
        of_point = _terms(body)
        if of_point not in terms:
            terms.append(of_point)
        place = {"id": point.id, "method": point.method, "noise": point.noise, "step": point.step, "seed": point.seed}
        own = {name: significant(body[name], DIGITS) for name in OWN}
        cells.append({**place, **own, "terms": terms.index(of_point)})
        rows.append({"name": NAME, **place, "accuracy": body["accuracy"], "seconds": body["seconds"]})
    methods = {point.method: type(point.spec.method) for point in sweep}
    titles = {name: method.title for name, method in methods.items()}
    headless = [name for name, method in methods.items() if method.headless]
    made = date.today().isoformat()
    head = {"format": FORMAT, "made": made, "titles": titles, "headless": headless, "terms": terms}
    publish(RESULT_FILE, "\n".join(_lines(head, cells)).encode())
    read.cache_clear()
    return rows


def _terms(body: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a report that many points share: the terms of their ε."""
    values = {**body, "absent": (body["guarantee"] or {}).get("absent") or {}}
    return {name: values[name] for name in TERMS}


def _lines(head: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each point, so that a diff of two versions shows which points changed."""
    yield f'{as_json(head)[:-1]},"points":['
    yield ",\n".join(as_json(cell) for cell in cells)
    yield "]}\n"
