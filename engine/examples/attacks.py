"""The finished attacks that ship with LeakLens: grids of protections and attacks on a few pictures.

assets/leaks/request.json names the run, the protections and the attacks; results.json.xz has the events of the attacks.
Their pictures repeat each other, so the file is packed as a whole.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from lzma import LZMAError
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import Damaged, LeakLensError, NewerVersion
from engine.events import Event, Finished, Started, decode
from engine.examples import checksums
from engine.examples.files import reason_of

REQUEST_FILE = ROOT / "assets" / "leaks" / "request.json"
RESULT_FILE = ROOT / "assets" / "leaks" / "results.json.xz"
FORMAT = 1
NAME = "leaks"  # of the grid, for the command `gallery`
UNREADABLE = (
    OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, LZMAError,
)  # fmt: skip
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


def stored() -> dict[str, AttackExample]:
    """Every attack that ships by its id: those of the screen Leak and of the first page."""
    from engine.examples import start  # it builds on this module

    return {example.id: example for example in (*start.attacks(), *attack_examples())}


@cache
def read(path: Path) -> tuple[AttackExample, ...]:
    """The attacks in one file."""
    checksums.require_published(path.parent.parent, f"leaks/{path.name}", AGAIN)
    try:
        body = json.loads(lzma.decompress(path.read_bytes()))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        return tuple(attack_example(cell, str(body["made"])) for cell in body["cells"])
    except UNREADABLE as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {reason_of(error)}", AGAIN) from None


def attack_example(cell: Mapping[str, Any], made: str) -> AttackExample:
    """The example in a body of JSON."""
    events = tuple(decode(event) for event in cell["events"])
    if not isinstance(events[0], Started) or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished attack")
    return AttackExample(events[0].run, made, cell["spec"], float(cell["seconds"]), events)
