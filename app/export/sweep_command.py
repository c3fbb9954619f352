"""The command that repeats the runs of an exported sweep."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from engine.capabilities import HasNoise
from engine.errors import LeakLensError
from engine.specs.sweep import SweepGrid, points, server_step_of

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

VARIED = ("noise", "server-step")


def command(specs: Sequence[RunSpec], view: str) -> str:
    """The command `sweep` that starts exactly these runs; empty if they are no complete sweep."""
    noises: list[float] = []
    for spec in specs:
        method = spec.method
        if isinstance(method, HasNoise):
            noises.append(method.noise_level)
    base = next((spec for spec in specs if isinstance(spec.method, HasNoise)), None)
    if base is None:
        return ""
    fields = {spec.method.name: method_fields(spec) for spec in specs}
    methods = tuple({"name": name, **own} for name, own in fields.items())
    seeds = range(min(spec.seed for spec in specs), max(spec.seed for spec in specs) + 1)
    steps = tuple(dict.fromkeys(server_step_of(spec.method) for spec in specs if isinstance(spec.method, HasNoise)))
    grid = SweepGrid(methods, tuple(dict.fromkeys(noises)), tuple(seeds), steps)
    start = _base(base)
    try:
        same = {point.id for point in points(start, grid)} == {spec.id for spec in specs}
    except LeakLensError:
        same = False
    return _written(start, grid, fields, view) if same else ""


def method_fields(spec: RunSpec) -> dict[str, Any]:
    """The fields of the method of a run that a sweep does not vary."""
    return {name: value for name, value in spec.method.values().items() if name not in ("name", *VARIED)}


def _base(spec: RunSpec) -> RunSpec:
    """The run that is varied, with the defaults of its method. Other fields of a base would pass to every method."""
    settings = run_settings.flat(spec.canonical())
    return run_settings.spec_of({name: value for name, value in settings.items() if not name.startswith("method.")})


def _written(base: RunSpec, grid: SweepGrid, fields: dict[str, dict[str, Any]], view: str) -> str:
    words = shlex.split(run_settings.command(base.canonical()))
    words[3] = "sweep"
    words += ["--methods", ",".join(fields), "--noises", _listed(grid.noises), "--seeds", str(len(grid.seeds))]
    words += ["--server-steps", _listed(grid.steps), "--view", view]
    for method, own in fields.items():
        defaults = run_settings.part_class("method", method)().values()
        for name, value in own.items():
            if value != defaults.get(name):
                words += ["--of", f"{method}.{name}={json.dumps(value)}"]
    return shlex.join(words)


def _listed(values: Sequence[float]) -> str:
    return ",".join(repr(value).removesuffix(".0") for value in values)
