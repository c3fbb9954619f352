"""The forecast of a run in a warm process, up to the largest runs that a RunSpec describes."""

from __future__ import annotations

import time
from typing import Any

from engine.bench import BenchRow
from engine.compute.threads import set_thread_modes
from engine.specs.run import RunSpec
from engine.training.forecast import forecast

LIMIT_S = 2.0
LARGEST: dict[str, Any] = {"clients": 10_000, "rounds": 10_000, "model": {"name": "mlp", "hidden": 8}}
WIDE = {"name": "convnet", "width": 128}
SPECS: dict[str, dict[str, Any]] = {
    "default": {"method": "udp-fedavg"},
    "10 of 10,000": {"method": "udp-fedavg", **LARGEST, "sampled": 10},
    "5,000 of 10,000": {"method": "udp-fedavg", **LARGEST, "sampled": 5000},
    "all of 10,000": {"method": "udp-fedavg", **LARGEST, "sampling": "all"},
    "records": {"method": "dp-fedavg", **LARGEST, "sampled": 100},
    "unequal records": {"method": "dp-fedavg", **LARGEST, "clients": 1000, "sampled": 500,
                        "partition": {"name": "dirichlet", "alpha": 0.3}},
    "pairs": {"method": {"name": "udp-fedavg", "noise-split": "full-local"}, **LARGEST, "clients": 1000,
              "sampled": 300},
    "target": {"method": "udp-fedavg", **LARGEST, "sampled": 5000, "target-epsilon": 100.0, "view": "outsider"},
    "budget": {"method": "udp-fedavg", **LARGEST, "sampled": 5000, "budget": 1000.0, "view": "aggregate"},
    "convnet 128": {"method": "udp-fedavg", "model": WIDE},
    "convnet 128, records": {"method": "dp-fedavg", "model": WIDE, "batch": 10_000, "clients": 1, "sampled": 1},
}  # fmt: skip


def measure() -> BenchRow:
    set_thread_modes()
    for method in ("udp-fedavg", "dp-fedavg"):  # a warm process has imported everything
        forecast(RunSpec(method=method, rounds=3, batch=8))
    ours: dict[str, Any] = {}
    for name, fields in SPECS.items():
        spec = RunSpec(**fields)
        began = time.perf_counter()
        forecast(spec)
        ours[f"{name} s"] = time.perf_counter() - began
    kept = max(ours.values()) <= LIMIT_S
    return BenchRow("forecast", ours, promise=f"every forecast within {LIMIT_S:g} s", kept=kept)
