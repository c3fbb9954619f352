"""Class mode: what one visitor may ask for and what the machine gives, read from `assets/class.toml`."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import BadInput, UnknownName, refusal

CLASS = "LEAKLENS_CLASS"  # "1" where others can reach the dashboard
FILE = ROOT / "assets" / "class.toml"
TABLES = {
    "visitor": ("runs", "seeds", "rounds", "clients", "sampled", "epochs"),
    "machine": ("waiting", "workers", "gigabytes", "names"),
}
SIZES = ("rounds", "clients", "sampled", "epochs")  # of a spec
NOUNS = {
    "runs": "runs at once",
    "seeds": "seeds",
    "rounds": "rounds",
    "clients": "clients",
    "sampled": "clients a round",
    "epochs": "local epochs",
}
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)
AT_HOME = "or start LeakLens on a computer of your own, where nothing is limited"


@dataclass(frozen=True)
class VisitorLimits:
    """Limits; None is no limit. Without class mode there are none."""

    runs: int | None = None  # of one visitor, waiting or running
    seeds: int | None = None  # of one question
    rounds: int | None = None
    clients: int | None = None
    sampled: int | None = None
    epochs: int | None = None
    waiting: int | None = None  # runs that wait, of all visitors
    workers: int | None = None
    gigabytes: float | None = None
    names: tuple[str, ...] = ()  # what visitors may type, beside addresses and the machine's own name


def class_mode() -> bool:
    """Whether others than the owner of this machine may be visiting."""
    return os.environ.get(CLASS, "0") not in ("", "0")


def caps() -> VisitorLimits:
    return read(FILE) if class_mode() else VisitorLimits()


@cache
def read(file: Path) -> VisitorLimits:
    """The limits in a file, which must hold every one of them and nothing else."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file.name}: cannot be read: {error}", f"Put it back at {file}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file.name}: {error}", "Write each line as: rounds = 100") from None
    _complete(file.name, tables, tuple(TABLES))
    for table, names in TABLES.items():
        _complete(f"{file.name}: {table}", tables[table], names)
    entries = {
        name: (f"{file.name}: {table}: {name}", tables[table][name]) for table in TABLES for name in TABLES[table]
    }
    gigabytes, names = _gigabytes(*entries.pop("gigabytes")), _names(*entries.pop("names"))
    found = VisitorLimits(**{name: _count(*entry) for name, entry in entries.items()}, gigabytes=gigabytes, names=names)
    if found.runs and (not found.seeds or found.seeds >= found.runs):
        law = f"must be more than the {found.seeds or 'unlimited'} seeds of a question, whose comparison is a run too"
        raise refusal(f"{file.name}: visitor: runs", law, found.runs, "Raise runs, or lower seeds")
    return found


def refused(
    caps: VisitorLimits, asked: Mapping[str, Any], mine: int, waiting: int, more: int = 1, seeds: int = 1
) -> BadInput | None:
    """Why a visitor may not ask this now, with the remedy.

    `asked` holds the numbers of a spec and `seeds` how many seeds it is asked with; it would bring `more` runs that are
    not known yet. `mine` runs of this visitor wait or run already, and `waiting` runs of anybody wait.
    """
    sizes = {**{name: asked.get(name) for name in SIZES}, "seeds": seeds}
    for name, got in sizes.items():
        most = getattr(caps, name)
        if most is not None and isinstance(got, int) and got > most:
            law = f"{NOUNS[name]} must be at most {most}"
            return refusal("class mode", law, got, f"Choose {most} or fewer, {AT_HOME}")
    if caps.runs is not None and more and mine + more > caps.runs:
        law = f"a visitor may have at most {caps.runs} runs waiting or running"
        got = f"{more} more" + (f" beside {mine}" if mine else "")
        return refusal("class mode", law, got, "Wait until one of yours has ended, or cancel one")
    if caps.waiting is not None and more and waiting + more > caps.waiting:
        law = f"at most {caps.waiting} runs may wait, of all visitors together"
        return refusal("class mode", law, f"{more} more beside {waiting}", "Try again when some of them have begun")
    return None


def told(caps: VisitorLimits) -> str:
    """What a visitor is limited to, as the end of a sentence."""
    limits = [f"{most} {noun}" for name, noun in NOUNS.items() if (most := getattr(caps, name)) is not None]
    return ", ".join(limits) or "none"


def _complete(who: str, table: Any, names: tuple[str, ...]) -> None:
    if not isinstance(table, dict):
        raise refusal(who, "must be a table", table, f"Write its head as [{who.rpartition(' ')[2]}]")
    listed = ", ".join(names)
    for name in table:
        if name not in names:
            raise UnknownName(f"{who}: no {name}", f"It holds {listed}")
    for name in names:
        if name not in table:
            raise BadInput(f"{who}: {name}: is missing", f"It must hold {listed}; 0 means no limit")


def _count(who: str, value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise refusal(who, "must be a whole number, 0 or more", value, "Correct it; 0 means no limit")
    return value or None


def _gigabytes(who: str, value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise refusal(who, "must be a number, 0 or more", value, "Correct it; 0 means no limit")
    return float(value) or None


def _names(who: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            law = "must be names as they stand in an address, without http:// and port"
            raise refusal(who, law, name, 'Write for example names = ["lab.example.org"]')
    return tuple(names)
