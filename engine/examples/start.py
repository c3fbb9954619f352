"""The finished sweep of the first page: one run at several noises, and attacks on the portrait in each.

assets/start/request.json has the run, the noises and the attacks; results.json.xz has the runs and the attacks. The
server step of each noise is the best of those that were tried, by the mean accuracy of all seeds.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.epsilon import Epsilon
from engine.errors import Damaged, LeakLensError, NewerVersion
from engine.events import Measured, Spent
from engine.examples import checksums
from engine.examples.attacks import UNREADABLE, AttackExample, attack_example
from engine.examples.files import PresetWords, RunExample, reason_of, run_example

REQUEST_FILE = ROOT / "assets" / "start" / "request.json"
RESULT_FILE = ROOT / "assets" / "start" / "results.json.xz"
FORMAT = 1
NAME = "start"  # for the command `gallery`
UPLOADS = ("1", "8", "ordinary", "cheat")  # what is in the upload: a number of pictures, or its kind
AGAIN = f"Make it again: python3 -m engine gallery {NAME}"


@dataclass(frozen=True)
class StartStop:
    """One noise: the runs of all seeds with the best server step. The first run is the one that is attacked."""

    noise: float
    step: float
    runs: tuple[RunExample, ...]  # one for each seed
    tried: Mapping[float, tuple[float, ...]]  # the accuracies of each server step that was tried, one for each seed

    @property
    def run(self) -> RunExample:
        """The run of seed 0, whose accuracy, ε and pictures belong together."""
        return self.runs[0]

    @property
    def accuracy(self) -> float:
        """The last accuracy of seed 0."""
        return self.accuracies[0]

    @property
    def accuracies(self) -> tuple[float, ...]:
        """The last accuracy of each seed."""
        return tuple(_last_accuracy(run) for run in self.runs)

    def epsilon(self, view: str) -> Epsilon | None:
        """The ε of this view at the end of seed 0; None for a view that the run does not have."""
        spent = [event for event in self.run.events if isinstance(event, Spent) and event.view == view]
        return spent[-1].total if spent else None


@dataclass(frozen=True)
class StartExample:
    """The finished sweep that ships."""

    made: str  # the day, as 2025-12-31
    stops: tuple[StartStop, ...]  # the noises, from none to the largest
    baseline: StartStop  # the same run without protection
    attacks: tuple[AttackExample, ...]

    @property
    def runs(self) -> tuple[RunExample, ...]:
        """The runs of all stops and of the baseline."""
        return tuple(run for stop in (*self.stops, self.baseline) for run in stop.runs)

    def cells(self, stop: StartStop, view: str, upload: str) -> tuple[AttackExample, ...]:
        """The attacks of this observer on the run of a stop with this upload, one of `UPLOADS`. Empty if none ships."""
        place = (view, upload)
        return tuple(
            example
            for example in self.attacks
            if example.spec["run"] == stop.run.spec and (example.spec["view"], upload_of(example.spec)) == place
        )


def upload_of(spec: Mapping[str, Any]) -> str:
    """What is in the upload that an attack reads, one of `UPLOADS`."""
    kind = str(spec.get("upload", "listed"))
    return str(len(spec["pictures"])) if kind == "listed" else kind


def load_error() -> LeakLensError | None:
    """Why the sweep cannot be read."""
    try:
        read(RESULT_FILE)
    except LeakLensError as error:
        return error
    return None


def start_example() -> StartExample | None:
    """The sweep of the first page; None where it cannot be read."""
    try:
        return read(RESULT_FILE)
    except LeakLensError:
        return None


def runs() -> tuple[RunExample, ...]:
    """All runs of the sweep; empty where it cannot be read."""
    example = start_example()
    return example.runs if example else ()


def attacks() -> tuple[AttackExample, ...]:
    """All attacks of the sweep; empty where it cannot be read."""
    example = start_example()
    return example.attacks if example else ()


@cache
def read(path: Path) -> StartExample:
    """The sweep in one file."""
    checksums.require_published(path.parent.parent, f"start/{path.name}", AGAIN)
    try:
        body = json.loads(lzma.decompress(path.read_bytes()))
        if int(body["format"]) > FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        made = str(body["made"])
        baseline = _stop(body["baseline"], made, ())
        stops = tuple(_stop(stop, made, baseline.runs) for stop in body["stops"])
        return StartExample(made, stops, baseline, tuple(attack_example(cell, made) for cell in body["cells"]))
    except UNREADABLE as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {reason_of(error)}", AGAIN) from None


def _stop(body: Mapping[str, Any], made: str, baselines: tuple[RunExample, ...]) -> StartStop:
    """A stop with the baseline of each of its runs, which has the same seed."""
    noise = float(body["noise"])
    method = f"noise {noise:g}" if baselines else "no protection"
    runs = []
    for seed, fields in enumerate(body["runs"]):
        words = PresetWords(f"First page: {method}, seed {seed}", "", aside=True)
        run = run_example({"made": made, **fields}, NAME, words)
        _last_accuracy(run)
        runs.append(replace(run, baseline=baselines[seed].id) if baselines else run)
    if not runs:
        raise ValueError(f"noise {noise:g} has no run")
    tried = {float(step): tuple(map(float, accuracies)) for step, accuracies in body["tried"]}
    return StartStop(noise, float(body["step"]), tuple(runs), tried)


def _last_accuracy(run: RunExample) -> float:
    events = [event for event in run.events if isinstance(event, Measured)]
    values = [event.value for event in events if (event.name, event.who) == ("accuracy", "global")]
    last = values[-1]
    if last is None:
        raise ValueError(f"{run.id} has no accuracy")
    return last
