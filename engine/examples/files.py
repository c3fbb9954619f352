"""The finished runs that ship with LeakLens. A first visit shows them at once, before torch is loaded."""

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
from engine.examples import checksums

ASSETS = ROOT / "assets"
FORMAT = 1  # of the files in assets/gallery
RESULT_FORMAT = 4  # of their runs: a copy of engine.specs.base.FORMAT, whose module loads torch


@dataclass(frozen=True)
class PresetWords:
    """The words next to a preset. The fields are keys of assets/presets/words.toml."""

    title: str
    lesson: str
    baseline: str = ""  # the preset of its baseline: the same run without protection
    aside: bool = False  # shown only as the baseline of another preset


@dataclass(frozen=True)
class RunExample:
    """One finished run, as it ships."""

    name: str
    title: str
    lesson: str
    made: str  # the day, as 2025-12-31
    id: str
    spec: Mapping[str, Any]  # canonical
    command: str  # the command line that repeats the run
    seconds: float  # on the machine that made it
    events: tuple[Event, ...]  # all but the recorded arrays
    partition: tuple[tuple[int, ...], ...]  # training pictures of each client, by class
    baseline: str = ""  # the id of its baseline, where that ships too
    aside: bool = False


def examples() -> tuple[RunExample, ...]:
    """The examples in their order. Unreadable ones are left out, and `load_errors` has the reasons."""
    loaded, _ = load_gallery(ASSETS)
    return tuple(example for example in loaded if not example.aside)


def example(run: str) -> RunExample | None:
    """The example with the id of this run, including baselines and the runs of the first page."""
    from engine.examples import start  # it builds on this module

    loaded, _ = load_gallery(ASSETS)
    of_gallery = next((example for example in loaded if example.id == run), None)
    return of_gallery or next((example for example in start.runs() if example.id == run), None)


def load_errors() -> tuple[LeakLensError, ...]:
    """Why examples are missing."""
    _, errors = load_gallery(ASSETS)
    return errors


def names() -> tuple[str, ...]:
    """Every preset that has words, in the order of the examples."""
    return tuple(read_words(ASSETS))


@cache
def load_gallery(assets: Path) -> tuple[tuple[RunExample, ...], tuple[LeakLensError, ...]]:
    """All examples, and the errors of those that cannot be read."""
    loaded: dict[str, RunExample] = {}
    errors: list[LeakLensError] = []
    try:
        words = read_words(assets)
    except HomeError as error:
        return (), (error,)
    for name, preset_words in words.items():
        try:
            checksums.require_published(assets, f"gallery/{name}.json", again(name))
            loaded[name] = read_example(assets / "gallery" / f"{name}.json", name, preset_words)
        except HomeError as error:
            errors.append(error)
    for name, example in loaded.items():
        baseline = loaded.get(words[name].baseline)
        loaded[name] = replace(example, baseline=baseline.id if baseline else "")
    return tuple(loaded.values()), tuple(errors)


def read_words(assets: Path) -> dict[str, PresetWords]:
    """The words of every preset, by its name."""
    path = assets / "presets" / "words.toml"
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: PresetWords(**fields) for name, fields in body.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = reason_of(error)
        raise Damaged(f"gallery: {path.name}: cannot be read: {reason}", "Download LeakLens again") from None


def read_example(path: Path, name: str, words: PresetWords) -> RunExample:
    """The example in one file."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if int(body["format"]) > FORMAT or int(body["spec"]["format"]) > RESULT_FORMAT:
            raise NewerVersion(f"gallery: {path.name}: was made by a newer LeakLens", "Update this one")
        return run_example(body, name, words)
    except Damaged as error:
        raise Damaged(f"gallery: {path.name}: {error.message}", error.remedy) from None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"gallery: {path.name}: {reason_of(error)}", again(name)) from None


def again(name: str) -> str:
    """The remedy for an example that cannot be read."""
    return f"Make it again: python3 -m engine gallery {name}"


def run_example(body: Mapping[str, Any], name: str, words: PresetWords) -> RunExample:
    """The example in a body of JSON."""
    events = tuple(decode(event) for event in body["events"])
    first = events[0] if events else None
    if not isinstance(first, Started) or first.run != body["id"] or not isinstance(events[-1], Finished):
        raise ValueError("its events are not those of one finished run")
    return RunExample(
        name=name,
        title=words.title,
        lesson=words.lesson,
        made=str(body["made"]),
        id=first.run,
        spec=body["spec"],
        command=str(body["command"]),
        seconds=float(body["seconds"]),
        events=events,
        partition=tuple(tuple(map(int, counts)) for counts in body["partition"]["train"]),
        aside=words.aside,
    )


def reason_of(error: Exception) -> str:
    """The reason why a file cannot be read or written, as the end of a sentence."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    if isinstance(error, KeyError) and error.args:
        return f"{error.args[0]} is missing"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "is not JSON"
    if isinstance(error, TypeError | AttributeError | IndexError | OverflowError | RecursionError):
        return "a value has another shape than this program writes"
    return str(error)
