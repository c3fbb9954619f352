"""The examples that ship: finished runs that a first visit shows at once, before torch is loaded."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from engine.environment import ROOT
from engine.errors import Damaged, HomeError, LeakLensError, NewerVersion
from engine.events import Event, Finished, Started, decode

ASSETS = ROOT / "assets"


FORMAT = 1  # of the files in assets/gallery


RESULTS = 1  # the result format of their runs: that of engine.specs.run, which only torch can open


@dataclass(frozen=True)
class PresetWords:
    """What a person reads of a preset."""

    title: str
    lesson: str
    twin: str = ""  # the preset that asks the same without protection
    aside: bool = False  # only shown as the twin of another


@dataclass(frozen=True)
class RunExample:
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


def examples() -> tuple[RunExample, ...]:
    """What a newcomer sees, in this order; what cannot be read is left out, and `troubles` says why."""
    return tuple(one for one in _gallery(ASSETS)[0] if not one.aside)


def example(run: str) -> RunExample | None:
    """The example with this run's id, those that are only twins among them."""
    return next((one for one in _gallery(ASSETS)[0] if one.id == run), None)


def troubles() -> tuple[LeakLensError, ...]:
    """Why an example is missing."""
    return _gallery(ASSETS)[1]


def names() -> tuple[str, ...]:
    """Every preset that has words, in the order of the examples."""
    return tuple(_words(ASSETS))


@cache
def _gallery(assets: Path) -> tuple[tuple[RunExample, ...], tuple[LeakLensError, ...]]:
    found: dict[str, RunExample] = {}
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


def _words(assets: Path) -> dict[str, PresetWords]:
    path = assets / "presets" / "words.toml"
    try:
        return {name: PresetWords(**said) for name, said in tomllib.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(f"gallery: {path.name}: cannot be read: {_why(error)}", "Fetch LeakLens again, whole") from None


def _read(path: Path, name: str, words: PresetWords) -> RunExample:
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


def _example(body: Mapping[str, Any], name: str, words: PresetWords) -> RunExample:
    if int(body["spec"]["format"]) < RESULTS:
        raise ValueError("holds what an older LeakLens answered")
    events = tuple(decode(one) for one in body["events"])
    begun = events[0] if events else None
    if not isinstance(begun, Started) or begun.run != body["id"] or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished run")
    return RunExample(
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
