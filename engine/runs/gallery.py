"""The gallery: finished runs that ship with LeakLens, shown at once on a first visit, before torch is loaded.

assets/presets holds the questions and `words.toml`, the words beside them; assets/gallery what the runs told.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import Damaged, HomeError, HomeUnwritable, LeakLensError, NewerVersion, UnknownName, shown
from engine.events import Event, Finished, Kept, Measured, Round, Started, decode, encode
from engine.results.report import report

ASSETS = ROOT / "assets"
FORMAT = 1  # of the files in assets/gallery
RESULTS = 1  # the result format of their runs: that of engine.specs.run, which only torch can open
DIGITS = 6  # significant ones of what was measured; an ε keeps all of them
PARTS = ("method", "dataset", "model", "partition")


@dataclass(frozen=True)
class Words:
    """What a person reads of a preset."""

    title: str
    lesson: str
    twin: str = ""  # the preset that asks the same without protection
    aside: bool = False  # only shown as the twin of another


@dataclass(frozen=True)
class Example:
    """One finished run, as it ships."""

    name: str
    title: str
    lesson: str
    made: str  # the day, as 2025-12-31
    id: str
    spec: Mapping[str, Any]  # the canonical question
    command: str  # the line that repeats it
    seconds: float  # on the machine that made it
    events: tuple[Event, ...]  # all that was told, but for what was put aside
    partition: tuple[tuple[int, ...], ...]  # training pictures of each client, by class
    twin: str = ""  # the id of the same run without protection, where that ships too
    aside: bool = False


# --- reading: nothing here needs torch ---------------------------------------------------------------------


def examples() -> tuple[Example, ...]:
    """What a newcomer sees, in this order; what cannot be read is left out, and `troubles` says why."""
    return tuple(one for one in _gallery(ASSETS)[0] if not one.aside)


def example(run: str) -> Example | None:
    """The example with this run's id, those that are only twins among them."""
    return next((one for one in _gallery(ASSETS)[0] if one.id == run), None)


def troubles() -> tuple[LeakLensError, ...]:
    """Why an example is missing."""
    return _gallery(ASSETS)[1]


def names() -> tuple[str, ...]:
    """Every preset that has words, in the order of the examples."""
    return tuple(_words(ASSETS))


@cache
def _gallery(assets: Path) -> tuple[tuple[Example, ...], tuple[LeakLensError, ...]]:
    found: dict[str, Example] = {}
    missed: list[LeakLensError] = []
    try:
        words = _words(assets)
    except HomeError as error:
        return (), (error,)
    for name, told in words.items():
        try:
            found[name] = _read(assets / "gallery" / f"{name}.json", name, told)
        except HomeError as error:
            missed.append(error)
    for name, one in found.items():
        twin = found.get(words[name].twin)
        found[name] = replace(one, twin=twin.id if twin else "")
    return tuple(found.values()), tuple(missed)


def _words(assets: Path) -> dict[str, Words]:
    path = assets / "presets" / "words.toml"
    try:
        return {name: Words(**said) for name, said in tomllib.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {_why(error)}", "Fetch LeakLens again, whole") from None


def _read(path: Path, name: str, words: Words) -> Example:
    again = f"Make it again: python3 -m engine gallery {name}"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT or int(body["spec"]["format"]) > RESULTS:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        return _example(body, name, words)
    except Damaged as error:
        raise Damaged(f"gallery: {path.name}: {error.message}", error.remedy) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: {_why(error)}", again) from None


def _example(body: Mapping[str, Any], name: str, words: Words) -> Example:
    if int(body["spec"]["format"]) < RESULTS:
        raise ValueError("holds what an older LeakLens answered")
    events = tuple(decode(one) for one in body["events"])
    begun = events[0] if events else None
    if not isinstance(begun, Started) or begun.run != body["id"] or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished run")
    return Example(
        name=name,
        title=words.title,
        lesson=words.lesson,
        made=str(body["made"]),
        id=begun.run,
        spec=body["spec"],
        command=str(body["command"]),
        seconds=float(body["seconds"]),
        events=events,
        partition=tuple(tuple(map(int, counts)) for counts in body["partition"]["train"]),
        aside=words.aside,
    )


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) and error.args else str(error)


# --- making: runs each preset for real ---------------------------------------------------------------------


def chosen(asked: Sequence[str]) -> tuple[str, ...]:
    """The presets that were named, or all of them."""
    known, named = names(), tuple(name.replace("_", "-") for name in asked)
    if unknown := [name for name in named if name not in known]:
        raise UnknownName(f"gallery: no {shown(unknown[0])}", f"Known here: {', '.join(known)}")
    return named or known


def make(name: str, threads: int) -> Example:
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


def row(made: Example) -> dict[str, Any]:
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
