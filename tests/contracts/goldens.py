"""Golden files: sections of named entries as JSON. An entry is added once and never replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
HOME = FOLDER / "home-0.4.0"


def compact(value: Any) -> str:
    """JSON in one form: equal values give equal text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def golden(name: str) -> dict[str, dict[str, Any]]:
    """Every section of a file; none where it is not there yet."""
    file = FOLDER / f"{name}.json"
    held: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return held


def entries(name: str, section: str) -> dict[str, Any]:
    return golden(name).get(section, {})


def add(name: str, section: str, made: Mapping[str, Any]) -> list[str]:
    """Add the entries that are missing, each a value or what makes it, and say which they were."""
    held = golden(name)
    known = held.setdefault(section, {})
    missing = [entry for entry in made if entry not in known]
    for entry in missing:
        known[entry] = made[entry]() if callable(made[entry]) else made[entry]
    if missing:
        (FOLDER / f"{name}.json").write_text(_text(held), encoding="utf-8")
    return [f"{name}.json: {section}: {entry}" for entry in missing]


def _text(held: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each entry, so that a difference between two versions can be read."""
    sections = []
    for section, known in held.items():
        lines = ",\n".join(f"{compact(entry)}:{compact(value)}" for entry, value in known.items())
        sections.append(f"{compact(section)}:{{\n{lines}\n}}")
    return "{\n" + ",\n".join(sections) + "\n}\n"
