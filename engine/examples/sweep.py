"""The frontier that ships: what a newcomer sees at once, several methods at several noises, each point a finished run.

assets/frontiers/asked.json names the question and what is varied; told.json holds what each point came to.
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
from engine.errors import Damaged, HomeUnwritable, LeakLensError, NewerVersion
from engine.results.report import report
from engine.results.summary import PointResult, point_result
from engine.specs.sweep import SweepGrid, points

if TYPE_CHECKING:
    from engine.specs.sweep import SweepPoint

ASKED = ROOT / "assets" / "frontiers" / "asked.json"
TOLD = ROOT / "assets" / "frontiers" / "told.json"
FORMAT = 1
NAME = "frontier"  # for the command
DIGITS = 6
OWN = ("accuracy", "accuracy-personal", "epsilon", "seconds")  # of a point; what else it told, many share
SHARED = ("unit", "adjacency", "delta", "accountant", "sampling", "bound", "reason", "absent")
AGAIN = f"Make it again: python3 -m engine gallery {NAME}"


@dataclass(frozen=True)
class StoredPoint:
    """Where a point stands that ships: a place on the frontier without its question."""

    method: str
    noise: float | None
    step: float
    seed: int
    name: str
    id: str


@dataclass(frozen=True)
class SweepExample:
    """A finished frontier, as it ships."""

    made: str  # the day, as 2025-12-31
    seconds: float  # of all its runs, one after another
    titles: Mapping[str, str]  # of the methods
    headless: tuple[str, ...]  # those without a last layer that is shared
    results: tuple[PointResult, ...]


def frontier() -> SweepExample | None:
    """What a newcomer sees; None where it cannot be read."""
    try:
        return read(TOLD)
    except LeakLensError:
        return None


@cache
def read(path: Path) -> SweepExample:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        found = tuple(_result(one, body["terms"]) for one in body["points"])
        seconds = sum(float(one["seconds"]) for one in body["points"])
        return SweepExample(str(body["made"]), seconds, dict(body["titles"]), tuple(body["headless"]), found)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {error}", AGAIN) from None


def _result(body: Mapping[str, Any], terms: Sequence[Mapping[str, Any]]) -> PointResult:
    told = {**terms[body["terms"]], **{name: body[name] for name in OWN}}
    noise, method = body["noise"], str(body["method"])
    place = StoredPoint(
        method, None if noise is None else float(noise), float(body["step"]), body["seed"], method, str(body["id"])
    )
    found = point_result(place, {**told, "guarantee": {"absent": told["absent"]}})
    if found is None:
        raise ValueError(f"{place.id} has no accuracy")
    return found


# --- making: every point for real --------------------------------------------------------------------------


def questions() -> tuple[SweepPoint, ...]:
    """The question of the file, and what it varies."""
    from engine.specs.run import RunSpec

    try:
        asked = json.loads(ASKED.read_text(encoding="utf-8"))
        base, methods = RunSpec(**asked["run"]), tuple({"name": name} for name in asked["methods"])
        seeds = tuple(range(base.seed, base.seed + int(asked["seeds"])))
        return points(base, SweepGrid(methods, tuple(asked["noises"]), seeds, tuple(asked["steps"])))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"gallery: preset {ASKED.name}: {error}", "Fetch LeakLens again, whole") from None


def make(threads: int) -> list[dict[str, Any]]:
    """Run them all and write what they came to; the answer of the command, a row each."""
    from engine.training.loop import run

    todo, terms, cells, rows = questions(), list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for point in todo:
        told = report(run(point.spec, threads=threads))
        words = {**told, "absent": (told["guarantee"] or {}).get("absent") or {}}
        shared = {name: words[name] for name in SHARED}
        if shared not in terms:
            terms.append(shared)
        where = {"id": point.id, "method": point.method, "noise": point.noise, "step": point.step, "seed": point.seed}
        cells.append({**where, **{name: _short(told[name]) for name in OWN}, "terms": terms.index(shared)})
        rows.append({"name": NAME, **where, "accuracy": told["accuracy"], "seconds": told["seconds"]})
    methods = {point.method: type(point.spec.method) for point in todo}
    titles = {name: method.title for name, method in methods.items()}
    headless = [name for name, method in methods.items() if method.headless]
    made = date.today().isoformat()
    head = {"format": FORMAT, "made": made, "titles": titles, "headless": headless, "terms": terms}
    _write("\n".join(_lines(head, cells)))
    return rows


def _lines(head: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line a point: whoever compares two versions sees which of them changed."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    yield f'{text(head)[:-1]},"points":['
    yield ",\n".join(text(cell) for cell in cells)
    yield "]}\n"


def _write(text: str) -> None:
    try:
        TOLD.parent.mkdir(parents=True, exist_ok=True)
        half = TOLD.with_suffix(".half")
        half.write_text(text, encoding="utf-8")
        half.replace(TOLD)
    except OSError as error:
        raise HomeUnwritable(f"gallery: {TOLD}: cannot be written: {error}", "Correct its permissions") from None
    read.cache_clear()


def _short(value: Any) -> Any:
    """Numbers as far as anybody reads them."""
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
