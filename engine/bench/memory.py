"""Peak memory of a run with 1,000 clients, for each method in a separate process (Linux). No peer."""

from __future__ import annotations

import subprocess
import sys

from engine.bench import BenchRow
from engine.environment import ROOT

PROGRAM = """
import re, sys
from pathlib import Path
from engine.training.loop import run
from engine.specs.run import RunSpec
spec = RunSpec(method=sys.argv[1], clients=1000, sampling="all", rounds=3, epochs=1)
for event in run(spec, threads=2):
    pass
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1e6)
"""


def measure() -> BenchRow:
    ours = {f"{name} GB": peak_gb(name) for name in ("udp-fedavg", "scaffold")}
    return BenchRow("memory", ours, promise="peak under 1.6 GB", kept=max(ours.values()) < 1.6)


def peak_gb(method: str) -> float:
    command = [sys.executable, "-c", PROGRAM, method]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(result.stdout.split()[-1])
