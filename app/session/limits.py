"""Class mode: the limits of each visitor and of the machine, read from `assets/class.toml`."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine import environment
from engine.environment import ROOT
from engine.errors import BadInput, UnknownName, refusal

FILE = ROOT / "assets" / "class.toml"
TABLES = {
    "visitor": ("runs", "seeds", "rounds", "clients", "sampled", "epochs"),
    "machine": ("waiting", "workers", "gigabytes", "names", "frames"),
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
FRAME = re.compile(rf"https?://{NAME.pattern}(:[0-9]{{1,5}})?", re.IGNORECASE)
AT_HOME = "or start LeakLens on your own computer, where nothing is limited"


@dataclass(frozen=True)
class VisitorLimits:
    """The limits in class mode. None means no limit; outside class mode all are None."""

    runs: int | None = None  # of one visitor, waiting or running
    seeds: int | None = None  # of one request
    rounds: int | None = None
    clients: int | None = None
    sampled: int | None = None
    epochs: int | None = None
    waiting: int | None = None  # queued runs of all visitors
    workers: int | None = None
    gigabytes: float | None = None
    frames: tuple[str, ...] = ()  # addresses of pages that may show the dashboard inside themselves
    names: tuple[str, ...] = ()  # host names of this machine, next to its IP addresses and its own name


def class_mode() -> bool:
    """Whether people other than the owner of this machine can visit the dashboard."""
    return environment.class_mode()


def caps() -> VisitorLimits:
    return read(FILE) if class_mode() else VisitorLimits()


@cache
def read(file: Path) -> VisitorLimits:
    """The limits in a file. The file must hold every limit and nothing else."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file.name}: cannot be read: {error}", f"Put it back at {file}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file.name}: {error}", "Write each line as: rounds = 100") from None
    _complete(file.name, tables, tuple(TABLES))
    for table, names in TABLES.items():
        _complete(f"{file.name}: {table}", tables[table], names)
    entries: dict[str, tuple[str, Any]] = {}
    for table, names in TABLES.items():
        for name in names:
            entries[name] = (f"{file.name}: {table}: {name}", tables[table][name])
    gigabytes = _gigabytes(*entries.pop("gigabytes"))
    host_names = _host_names(*entries.pop("names"))
    frames = _frames(*entries.pop("frames"))
    counts = {name: _count(*entry) for name, entry in entries.items()}
    limits = VisitorLimits(**counts, gigabytes=gigabytes, names=host_names, frames=frames)
    if limits.runs and (not limits.seeds or limits.seeds >= limits.runs):
        rule = (
            f"must be more than the {limits.seeds or 'unlimited'} seeds of a request, because its baseline is a run too"
        )
        raise refusal(f"{file.name}: visitor: runs", rule, limits.runs, "Raise runs, or lower seeds")
    return limits


def refused(
    caps: VisitorLimits, fields: Mapping[str, Any], own: int, waiting: int, more: int = 1, seeds: int = 1
) -> BadInput | None:
    """Why a visitor may not submit a request now, with the remedy; None if the request is within all limits.

    `fields` are the fields of its spec, and `seeds` is the number of seeds. `more` counts the runs of the request that
    are not in the store yet. `own` runs of this visitor are queued or running. `waiting` runs of all are queued.
    """
    sizes = {name: fields.get(name) for name in SIZES}
    for name, got in {**sizes, "seeds": seeds}.items():
        most = getattr(caps, name)
        if most is not None and isinstance(got, int) and got > most:
            rule = f"{NOUNS[name]} must be at most {most}"
            return refusal("class mode", rule, got, f"Choose {most} or fewer, {AT_HOME}")
    if caps.runs is not None and more and own + more > caps.runs:
        rule = f"a visitor may have at most {caps.runs} runs waiting or running"
        more_runs = f"{more} more next to {own}" if own else f"{more} more"
        return refusal("class mode", rule, more_runs, "Wait until one of your runs ends, or cancel one")
    if caps.waiting is not None and more and waiting + more > caps.waiting:
        rule = f"the queue holds at most {caps.waiting} runs of all visitors"
        return refusal("class mode", rule, f"{more} more next to {waiting}", "Try again when some of them have started")
    return None


def too_large(fields: Mapping[str, Any], seeds: int = 1) -> BadInput | None:
    """Why no visitor may submit a request of this size, whatever else is under way."""
    return refused(caps(), fields, own=0, waiting=0, more=0, seeds=seeds)


def most(name: str) -> int | None:
    """The largest value that a visitor may choose for this size of a run, or for the seeds."""
    largest: int | None = getattr(caps(), name) if name in (*SIZES, "seeds") else None
    return largest


def limits_text(caps: VisitorLimits) -> str:
    """The limits of a visitor, as the end of a sentence."""
    limits = []
    for name, noun in NOUNS.items():
        most = getattr(caps, name)
        if most is not None:
            limits.append(f"{most} {noun}")
    return ", ".join(limits) or "none"


def _complete(where: str, table: Any, names: tuple[str, ...]) -> None:
    """Refuse a table that lacks one of the names or has another one."""
    if not isinstance(table, dict):
        raise refusal(where, "must be a table", table, f"Start the table with [{where.rpartition(' ')[2]}]")
    listed = ", ".join(names)
    for name in table:
        if name not in names:
            raise UnknownName(f"{where}: no {name}", f"It holds {listed}")
    for name in names:
        if name not in table:
            raise BadInput(f"{where}: {name}: is missing", f"It must hold {listed}; 0 means no limit")


def _count(where: str, value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise refusal(where, "must be a whole number, 0 or more", value, "Correct it; 0 means no limit")
    return value or None


def _gigabytes(where: str, value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise refusal(where, "must be a number, 0 or more", value, "Correct it; 0 means no limit")
    return float(value) or None


def _frames(where: str, value: Any) -> tuple[str, ...]:
    rule = "must be addresses of pages, with https:// and without a path"
    return _matching(FRAME, where, value, rule, 'Write for example frames = ["https://moodle.example.org"]')


def _host_names(where: str, value: Any) -> tuple[str, ...]:
    rule = "must be host names, without http:// and port"
    return _matching(NAME, where, value, rule, 'Write for example names = ["lab.example.org"]')


def _matching(pattern: re.Pattern[str], where: str, value: Any, rule: str, remedy: str) -> tuple[str, ...]:
    """The texts of a list, each of which must match."""
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str) or not pattern.fullmatch(text):
            raise refusal(where, rule, text, remedy)
    return tuple(texts)
