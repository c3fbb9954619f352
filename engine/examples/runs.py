"""The gallery: finished runs that ship with LeakLens, shown at once on a first visit, before torch is loaded.

assets/presets holds the questions and `words.toml`, the words beside them; assets/gallery what the runs told.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from engine.errors import Damaged, HomeUnwritable, UnknownName, shown
from engine.events import Event, Finished, Kept, Measured, Round, encode
from engine.examples.files import ASSETS, FORMAT, RunExample, _gallery, _read, _why, _words, names
from engine.results.report import report

DIGITS = 6  # significant ones of what was measured; an ε keeps all of them
PARTS = ("method", "dataset", "model", "partition")


# --- reading: nothing here needs torch ---------------------------------------------------------------------


# --- making: runs each preset for real ---------------------------------------------------------------------


def chosen(asked: Sequence[str]) -> tuple[str, ...]:
    """The presets that were named, or all of them."""
    known, named = names(), tuple(name.replace("_", "-") for name in asked)
    if unknown := [name for name in named if name not in known]:
        raise UnknownName(f"gallery: no {shown(unknown[0])}", f"Known here: {', '.join(known)}")
    return named or known


def make(name: str, threads: int) -> RunExample:
    """Run a preset, write what it told, and read it back."""
    import opacus.accountants  # noqa: F401  (a second of imports, which is not the run's)

    from engine.specs.run import RunSpec
    from engine.training.loop import run

    question = _question(ASSETS / "presets" / f"{name}.json")
    spec = RunSpec(**question)
    told: list[Event] = []
    counts: list[list[int]] = []
    for event in run(spec, threads=threads):
        if isinstance(event, Kept) and event.kind == "partition" and event.payload is not None:
            counts = event.payload["train"].tolist()
        told += [event] if _shipped(event) else []
    ending = told[-1]
    assert isinstance(ending, Finished)
    body = {
        "format": FORMAT,
        "name": name,
        "made": date.today().isoformat(),
        "seconds": ending.seconds,
        "id": spec.id,
        "command": command(question),
        "spec": spec.canonical(),
        "partition": {"train": counts},
        "events": [compact(event) for event in told],
    }
    path = file(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        half = path.with_suffix(".half")
        half.write_text(text + "\n", encoding="utf-8")
        half.replace(path)
    except OSError as error:
        raise HomeUnwritable(f"gallery: {path}: cannot be written: {_why(error)}", "Correct its permissions") from None
    _gallery.cache_clear()
    return _read(path, name, _words(ASSETS)[name])


def file(name: str) -> Path:
    """Where the example of a preset lies."""
    return ASSETS / "gallery" / f"{name}.json"


def row(made: RunExample) -> dict[str, Any]:
    """The answer of the command for one example."""
    told = report(made.events)
    body = {"name": made.name, "id": made.id, **{key: told[key] for key in ("accuracy", "epsilon", "seconds")}}
    return {**body, "bytes": file(made.name).stat().st_size}


def _question(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(f"gallery: preset {path.name}: {_why(error)}", "Fetch LeakLens again, whole") from None


def _shipped(event: Event) -> bool:
    """What was put aside does not ship, and how far a round had come depends on the machine."""
    return not isinstance(event, Kept) and not (isinstance(event, Round) and event.fraction > 0)


def compact(event: Event) -> dict[str, Any]:
    """An event as JSON without what `decode` fills in again."""
    if isinstance(event, Measured) and event.value is not None:
        event = replace(event, value=float(f"{event.value:.{DIGITS}g}"))
    usual = {one.name: _default(one) for one in fields(event)}
    return {
        name: value for name, value in encode(event).items() if name == "event" or getattr(event, name) != usual[name]
    }


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def command(question: Mapping[str, Any]) -> str:
    """The line that asks this in a terminal."""
    return shlex.join(["python3", "-m", "engine", "run", *_options(question)])


def _options(question: Mapping[str, Any]) -> Iterator[str]:
    for name, value in question.items():
        if name not in PARTS or isinstance(value, str):
            yield from (f"--{name}", _text(value))
            continue
        yield from (f"--{name}", value["name"])
        for inner, held in value.items():
            if inner != "name":
                prefix = "" if name == "method" else f"{name}."
                yield from ("--set", f"{prefix}{inner}={_text(held)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
