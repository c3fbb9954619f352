"""The shape of JSON: its keys and the types of its values. A later version may add keys and may take none away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

Shape = dict[str, Any]  # by type what is known of it: of an object each key, of an array its items, of rows each name

ABSENT: Shape = {"absent": {}}  # of a key that only some items of an array have


def shape(value: Any) -> Shape:
    """The shape of one value; items of an array that have names are matched by name."""
    if isinstance(value, Mapping):
        return {"object": {key: shape(inner) for key, inner in sorted(value.items())}}
    if isinstance(value, list):
        named = [item["name"] for item in value if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
        if value and len(set(named)) == len(value):
            return {"rows": dict(zip(named, map(shape, value), strict=True))}
        items: Shape = {}
        return {"array": reduce(both, map(shape, value), items)}
    if value is None or isinstance(value, bool):
        return {"null" if value is None else "boolean": {}}
    return {"string" if isinstance(value, str) else "number": {}}


def both(first: Shape, second: Shape) -> Shape:
    """The shape of something that is sometimes of one shape and sometimes of the other."""
    if not first or not second:
        return {**first, **second}
    joined: Shape = {}
    for kind in sorted(first.keys() | second.keys()):
        if kind not in first or kind not in second:
            joined[kind] = first.get(kind, second.get(kind))
        elif kind == "array":
            joined[kind] = both(first[kind], second[kind])
        else:
            keys = sorted(first[kind].keys() | second[kind].keys())
            joined[kind] = {key: both(first[kind].get(key, ABSENT), second[kind].get(key, ABSENT)) for key in keys}
    return joined


def misfits(actual: Shape, known: Shape, place: str = "it") -> list[str]:
    """Everything that is not as it was: a key is gone, or a value has another type."""
    changes = [f"{place} is {kind}, and was {' or '.join(known)}" for kind in actual if known and kind not in known]
    for kind in actual.keys() & known.keys():
        if kind == "array":
            empty = known[kind] and not actual[kind]
            changes += [f"{place} is empty"] if empty else misfits(actual[kind], known[kind], f"{place}[]")
            continue
        for key, was in known[kind].items():
            here = f"{place}.{key}"
            if key in actual[kind]:
                changes += misfits(actual[kind][key], was, here)
            elif "absent" not in was:
                changes.append(f"{here} is gone")
    return changes


def options(command: Any) -> dict[str, Any]:
    """The options of a command by their names, each as far as a script depends on it."""
    return {
        (action.option_strings or [action.dest])[-1]: {
            "flags": list(action.option_strings),
            "takes": type(action).__name__.strip("_").removesuffix("Action").lower(),
            "values": action.nargs,
            "choices": None if action.choices is None else list(action.choices),
            "default": None if action.default == "==SUPPRESS==" else action.default,
            "required": action.required,
        }
        for action in command._actions
        if action.dest != "help"
    }


def fewer(actual: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """What is not as it was of the options of a command; a choice may be added."""
    changes = [f"{name} is gone" for name in known if name not in actual]
    for name in known.keys() & actual.keys():
        for what, was in known[name].items():
            now = actual[name][what]
            same = _holds(now, was) if what in ("choices", "flags") else now == was
            changes += [] if same else [f"{name}: {what} is {now}, and was {was}"]
    return changes


def _holds(now: Sequence[str] | None, was: Sequence[str] | None) -> bool:
    return now is None or (was is not None and set(was) <= set(now))
