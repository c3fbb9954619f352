"""The attacks that ship: what a newcomer sees at once, a grid of protections and attacks on one picture.

assets/leaks/asked.json names the run, the protections and the attacks; told.json holds what they told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.environment import ROOT
from engine.errors import Damaged, HomeUnwritable, LeakLensError, NewerVersion
from engine.events import Event, Finished, Judged, Started, decode, encode

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec

ASKED = ROOT / "assets" / "leaks" / "asked.json"
TOLD = ROOT / "assets" / "leaks" / "told.json"
FORMAT = 1
NAME = "leaks"  # of the whole grid, for the command
DIGITS = 6
AGAIN = f"Make it again: python3 -m engine gallery {NAME}"


@dataclass(frozen=True)
class AttackExample:
    """One finished attack, as it ships."""

    id: str
    made: str  # the day, as 2025-12-31
    spec: Mapping[str, Any]
    seconds: float
    events: tuple[Event, ...]


def leaks() -> tuple[AttackExample, ...]:
    """The grid of a first visit; empty where it cannot be read."""
    try:
        return read(TOLD)
    except LeakLensError:
        return ()


@cache
def read(path: Path) -> tuple[AttackExample, ...]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        return tuple(_cell(one, str(body["made"])) for one in body["cells"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {error}", AGAIN) from None


def _cell(body: Mapping[str, Any], made: str) -> AttackExample:
    events = tuple(decode(one) for one in body["events"])
    if not isinstance(events[0], Started) or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished attack")
    return AttackExample(events[0].run, made, body["spec"], float(body["seconds"]), events)


# --- making: every attack for real -------------------------------------------------------------------------


def questions() -> list[AttackSpec]:
    """The preset's protections times its attacks."""
    from engine.specs.attack import AttackSpec

    try:
        asked = json.loads(ASKED.read_text(encoding="utf-8"))
        return [
            AttackSpec(run={**asked["run"], "method": method}, attack=attack, pictures=asked["pictures"])
            for method in asked["methods"]
            for attack in asked["attacks"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"gallery: preset {ASKED.name}: {error}", "Fetch LeakLens again, whole") from None


def make(threads: int) -> list[dict[str, Any]]:
    """Run them all and write what they told; the answer of the command, a row each."""
    from engine.leakage.pictures import attack

    cells, rows = [], []
    for spec in questions():
        told = list(attack(spec, threads=threads))
        ending, judged = told[-1], next(event for event in told if isinstance(event, Judged))
        assert isinstance(ending, Finished)
        events = [_short(encode(event)) for event in told]
        cells.append({"spec": spec.canonical(), "seconds": ending.seconds, "events": events})
        psnr = sum(judged.numbers["psnr"]) / len(judged.numbers["psnr"])
        method = {key: value for key, value in spec.run.method.values().items() if key == "noise"}
        rows.append({"name": NAME, "id": spec.id, "attack": spec.attack.name, "method": spec.run.method.name, **method,
                     "psnr": psnr, "state": judged.state, "seconds": ending.seconds})  # fmt: skip
    body = {"format": FORMAT, "made": date.today().isoformat(), "cells": cells}
    try:
        TOLD.parent.mkdir(parents=True, exist_ok=True)
        half = TOLD.with_suffix(".half")
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        half.write_text(text + "\n", encoding="utf-8")
        half.replace(TOLD)
    except OSError as error:
        raise HomeUnwritable(f"gallery: {TOLD}: cannot be written: {error}", "Correct its permissions") from None
    read.cache_clear()
    return rows


def _short(value: Any) -> Any:
    """Numbers as far as anybody reads them."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, list) else value
