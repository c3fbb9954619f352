"""Benchmarks. Most measure our code and a peer alternately in the same run, and report the ratio.

A benchmark is never a test.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.errors import BadInput

BENCHES = (
    "rounds-mlp",
    "rounds-lenet",
    "methods",
    "dp-step",
    "t-tsvd",
    "frontier",
    "forecast",
    "first-accuracy",
    "store",
    "memory",
    "inversion",
    "inversion-quality",
    "cliff",
    "restarts",
    "first-picture",
    "photo",
    "ui",
)
Main = Callable[[Sequence[str]], int]  # runs a command line and returns its exit code
SHOWN = 5
CHECKS = ("fuzz", "faults")  # they take long and compare with nothing: only a name starts them


@dataclass(frozen=True)
class BenchRow:
    """One line of the table: our numbers, those of the peer, their ratio, the promise, and whether it was kept."""

    name: str
    ours: dict[str, Any]
    peer: dict[str, Any] = field(default_factory=dict)
    ratio: float | None = None
    promise: str = ""
    kept: bool | None = None
    missing: str = ""  # the command that installs a missing peer

    def words(self) -> str:
        """The row as one line of text."""
        parts = [f"ours {formatted(self.ours)}"]
        if self.peer:
            parts.append(f"peer {formatted(self.peer)}")
        if self.ratio is not None:
            parts.append(f"ratio {self.ratio:.2f}")
        if self.missing:
            parts.append(f"{self.promise}: not compared: {self.missing}")
        elif self.promise:
            parts.append(f"{self.promise}: {'kept' if self.kept else 'NOT KEPT'}")
        return "; ".join(parts)

    def json(self) -> dict[str, Any]:
        return asdict(self)


def formatted(numbers: dict[str, Any]) -> str:
    parts = []
    for name, value in numbers.items():
        number = f"{value:.4g}" if isinstance(value, float) else str(value)
        parts.append(f"{name} {number}")
    return ", ".join(parts)


def first_of(wrong: Sequence[str]) -> dict[str, Any]:
    """The first things that a check found wrong, as a part of its row."""
    return {"first": list(wrong[:SHOWN])} if wrong else {}


def measure(name: str, main: Main | None = None, **options: int | None) -> BenchRow:
    """Run one benchmark. Each has its own module. The checks take `count` and `seed`; `main` runs a command line."""
    given: dict[str, Any] = {option: value for option, value in options.items() if value is not None}
    if given and name not in CHECKS:
        rule = f"bench {name}: {', '.join(given)}: only {' and '.join(CHECKS)} have these options"
        raise BadInput(rule, "Leave them out")
    if name == "fuzz":
        given["main"] = main
    module = importlib.import_module(f"engine.bench.{name.replace('-', '_')}")
    row: BenchRow = module.measure(**given)
    json.dumps(row.json(), allow_nan=False)
    return row
