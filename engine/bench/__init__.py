"""Benchmarks: each measures ours and a peer in the same run, alternating, and tells the ratio. Never a test."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

BENCHES = (
    "rounds-mlp",
    "rounds-lenet",
    "dp-step",
    "t-tsvd",
    "frontier",
    "first-accuracy",
    "store",
    "memory",
    "inversion",
    "restarts",
    "first-picture",
    "ui",
)


@dataclass(frozen=True)
class BenchRow:
    """One line of the table: what was measured, beside what, and what was promised."""

    name: str
    ours: dict[str, Any]
    peer: dict[str, Any] = field(default_factory=dict)
    ratio: float | None = None
    promise: str = ""
    kept: bool | None = None

    def words(self) -> str:
        parts = [f"ours {told(self.ours)}"]
        if self.peer:
            parts.append(f"peer {told(self.peer)}")
        if self.ratio is not None:
            parts.append(f"ratio {self.ratio:.2f}")
        if self.promise:
            parts.append(f"{self.promise}: {'kept' if self.kept else 'NOT KEPT'}")
        return "; ".join(parts)

    def json(self) -> dict[str, Any]:
        return asdict(self)


def told(numbers: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in numbers.items()
    )


def measure(name: str) -> BenchRow:
    """Run one benchmark; each lives in a module of its own."""
    module = importlib.import_module(f"engine.bench.{name.replace('-', '_')}")
    row: BenchRow = module.measure()
    json.dumps(row.json(), allow_nan=False)
    return row
