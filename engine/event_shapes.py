"""Checks that the values of a stored event have the types that its class declares: a damaged event is never misread."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Union, get_args, get_origin, get_type_hints

Check = Callable[[Any], bool]
PLAIN: Mapping[Any, tuple[type, ...]] = {
    int: (int,),
    float: (int, float, type(None)),  # a number that is not finite is written as null
    str: (str,),
    bool: (bool,),
    type(None): (type(None),),
}

_known: dict[type[Any], dict[str, Check]] = {}


def wrong_field(kind: type[Any], values: Mapping[str, Any]) -> str:
    """The name of the first field whose value has another type than declared; empty if all are right."""
    checks = _checks(kind)
    for name, value in values.items():
        check = checks.get(name)
        if check and not check(value):
            return name
    return ""


def _checks(kind: type[Any]) -> dict[str, Check]:
    """The check of each field, made once for each kind of event."""
    known = _known.get(kind)
    if known is None:
        hints = get_type_hints(kind, localns={"Payload": Any})
        known = _known[kind] = {field.name: _check(hints[field.name]) for field in fields(kind)}
    return known


def _check(hint: Any) -> Check:
    if hint is Any:
        return lambda value: True
    if hint in PLAIN:
        plain = PLAIN[hint]
        return lambda value: type(value) in plain
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of([_check(argument) for argument in arguments])
    if origin is tuple:
        return _tuple(arguments)
    assert origin is Mapping, hint
    return _mapping(_check(arguments[1]))


def _any_of(checks: list[Check]) -> Check:
    return lambda value: any(check(value) for check in checks)


def _tuple(arguments: tuple[Any, ...]) -> Check:
    if arguments[-1] is Ellipsis:
        item = _check(arguments[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    items = [_check(argument) for argument in arguments]

    def fits(value: Any) -> bool:
        if not isinstance(value, tuple) or len(value) != len(items):
            return False
        return all(check(item) for check, item in zip(items, value, strict=True))

    return fits


def _mapping(item: Check) -> Check:
    return lambda value: isinstance(value, Mapping) and all(map(item, value.values()))
