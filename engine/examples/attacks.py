"""The finished attacks that ship with LeakLens: a grid of protections and attacks on one picture.

assets/leaks/request.json names the run, the protections and the attacks; results.json has the events of the attacks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.environment import ROOT
from engine.errors import Damaged, HomeUnwritable, LeakLensError, NewerVersion
from engine.events import Event, Finished, Judged, Started, decode, encode
from engine.examples import checksums
from engine.examples.files import reason_of

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec

REQUEST_FILE = ROOT / "assets" / "leaks" / "request.json"
RESULT_FILE = ROOT / "assets" / "leaks" / "results.json"
FORMAT = 1
NAME = "leaks"  # of the grid, for the command `gallery`
DIGITS = 6  # significant digits of every number
AGAIN = f"Make it again: python3 -m engine gallery {NAME}"


@dataclass(frozen=True)
class AttackExample:
    """One finished attack that ships."""

    id: str
    made: str  # the day, as 2025-12-31
    spec: Mapping[str, Any]
    seconds: float
    events: tuple[Event, ...]


def load_error() -> LeakLensError | None:
    """Why the grid cannot be read."""
    try:
        read(RESULT_FILE)
    except LeakLensError as error:
        return error
    return None


def attack_examples() -> tuple[AttackExample, ...]:
    """The grid of a first visit; empty where it cannot be read."""
    try:
        return read(RESULT_FILE)
    except LeakLensError:
        return ()


@cache
def read(path: Path) -> tuple[AttackExample, ...]:
    """The attacks in one file."""
    checksums.require_published(path.parent.parent, f"leaks/{path.name}", AGAIN)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        return tuple(_example(cell, str(body["made"])) for cell in body["cells"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {reason_of(error)}", AGAIN) from None


def _example(cell: Mapping[str, Any], made: str) -> AttackExample:
    events = tuple(decode(event) for event in cell["events"])
    if not isinstance(events[0], Started) or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished attack")
    return AttackExample(events[0].run, made, cell["spec"], float(cell["seconds"]), events)


# --- making the file ---------------------------------------------------------------------------------------


def requested_specs() -> list[AttackSpec]:
    """The specs of the grid: each of its attacks against each of its protections."""
    from engine.specs.attack import AttackSpec

    try:
        request = json.loads(REQUEST_FILE.read_text(encoding="utf-8"))
        specs: list[AttackSpec] = []
        for method, attack in product(request["methods"], request["attacks"]):
            run = {**request["run"], "method": method}
            specs.append(AttackSpec(run=run, attack=attack, pictures=request["pictures"]))
        return specs
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"gallery: preset {REQUEST_FILE.name}: {error}", "Download LeakLens again") from None


def make(threads: int) -> list[dict[str, Any]]:
    """Run all attacks and write their events; return a row for each, as the command `gallery` prints it."""
    from engine.leakage.pictures import attack

    cells: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for spec in requested_specs():
        events = list(attack(spec, threads=threads))
        ending = events[-1]
        assert isinstance(ending, Finished)
        shortened = [_shortened(encode(event)) for event in events]
        cells.append({"spec": spec.canonical(), "seconds": ending.seconds, "events": shortened})
        rows.append(_row(spec, events, ending.seconds))
    _write({"format": FORMAT, "made": date.today().isoformat(), "cells": cells})
    return rows


def _row(spec: AttackSpec, events: Sequence[Event], seconds: float) -> dict[str, Any]:
    judged = next(event for event in events if isinstance(event, Judged))
    noise = {name: value for name, value in spec.run.method.values().items() if name == "noise"}
    return {
        "name": NAME,
        "id": spec.id,
        "attack": spec.attack.name,
        "method": spec.run.method.name,
        **noise,
        "psnr": sum(judged.numbers["psnr"]) / len(judged.numbers["psnr"]),
        "state": judged.state,
        "seconds": seconds,
    }


def _write(body: Mapping[str, Any]) -> None:
    try:
        RESULT_FILE.parent.mkdir(parents=True, exist_ok=True)
        half = RESULT_FILE.with_suffix(".half")
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        half.write_text(text + "\n", encoding="utf-8")
        half.replace(RESULT_FILE)
    except OSError as error:
        raise HomeUnwritable(f"gallery: {RESULT_FILE}: cannot be written: {error}", "Correct its permissions") from None
    checksums.write()
    read.cache_clear()


def _shortened(value: Any) -> Any:
    """The value with all of its numbers cut to the digits that a reader needs."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value
