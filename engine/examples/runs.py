"""Make the gallery: run every preset, and write its events to the files that ship with LeakLens.

assets/presets has the specs and, in `words.toml`, the words next to them; assets/gallery has the events of the runs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from engine.errors import Damaged, UnknownName, shown
from engine.events import Event, Finished, Kept
from engine.examples.files import (
    ASSETS,
    FORMAT,
    RunExample,
    load_gallery,
    names,
    read_example,
    read_words,
    reason_of,
)
from engine.examples.publishing import as_json, compact, publish, shipped
from engine.results.report import report

PARTS = ("method", "dataset", "model", "partition")


def chosen(presets: Sequence[str], collections: Sequence[str] = ()) -> tuple[str, ...]:
    """The presets with these names; all presets if there are no names. A refusal names the `collections`, too."""
    known = names()
    selected = tuple(name.replace("_", "-") for name in presets)
    for name in selected:
        if name not in known:
            raise UnknownName(f"gallery: no {shown(name)}", f"Known here: {', '.join((*known, *collections))}")
    return selected or known


def make(name: str, threads: int) -> RunExample:
    """Run a preset, write its events, and read them back."""
    import opacus.accountants  # noqa: F401  (importing it takes a second, which is not part of the run)

    from engine.specs.run import RunSpec
    from engine.training.loop import run

    preset = _preset_fields(ASSETS / "presets" / f"{name}.json")
    spec = RunSpec(**preset)
    events: list[Event] = []
    counts: list[list[int]] = []
    for event in run(spec, threads=threads):
        if isinstance(event, Kept) and event.kind == "partition" and event.payload is not None:
            counts = event.payload["train"].tolist()
        if shipped(event):
            events.append(event)
    ending = events[-1]
    assert isinstance(ending, Finished)
    body = {
        "format": FORMAT,
        "name": name,
        "made": date.today().isoformat(),
        "seconds": ending.seconds,
        "id": spec.id,
        "command": command(preset),
        "spec": spec.canonical(),
        "partition": {"train": counts},
        "events": [compact(event) for event in events],
    }
    path = file(name)
    publish(path, (as_json(body) + "\n").encode())
    load_gallery.cache_clear()
    return read_example(path, name, read_words(ASSETS)[name])


def file(name: str) -> Path:
    """The file with the example of a preset."""
    return ASSETS / "gallery" / f"{name}.json"


def row(example: RunExample) -> dict[str, Any]:
    """One example as the command `gallery` prints it."""
    body = report(example.events)
    return {
        "name": example.name,
        "id": example.id,
        "accuracy": body["accuracy"],
        "epsilon": body["epsilon"],
        "seconds": body["seconds"],
        "bytes": file(example.name).stat().st_size,
    }


def _preset_fields(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(f"gallery: preset {path.name}: {reason_of(error)}", "Download LeakLens again") from None


def command(preset: Mapping[str, Any]) -> str:
    """The command line that repeats a run."""
    return shlex.join(["python3", "-m", "engine", "run", *_options(preset)])


def _options(preset: Mapping[str, Any]) -> Iterator[str]:
    for name, value in preset.items():
        if name not in PARTS or isinstance(value, str):
            yield from (f"--{name}", _text(value))
            continue
        yield from (f"--{name}", value["name"])
        prefix = "" if name == "method" else f"{name}."
        for parameter, setting in value.items():
            if parameter != "name":
                yield from ("--set", f"{prefix}{parameter}={_text(setting)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
