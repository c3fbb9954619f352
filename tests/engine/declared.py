"""From a part's own declaration: the same part with one field changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, get_args

from engine.errors import BadInput
from engine.part import Part


def changed(part: Part) -> Iterator[Part]:
    """For each field of the part, a part in which only that field has another legal value."""
    for name, field in type(part).model_fields.items():
        now = getattr(part, name)
        yield _legal(part, name, _others(now, get_args(field.annotation)))


def _legal(part: Part, name: str, values: Iterator[Any]) -> Part:
    for value in values:
        with suppress(BadInput):
            return type(part)(**{name: value})
    raise AssertionError(f"no other legal value of {name} was found")


def _others(now: Any, choices: tuple[Any, ...]) -> Iterator[Any]:
    if isinstance(now, bool):
        yield not now
    elif isinstance(now, str):
        yield from (choice for choice in choices if choice != now)
    elif isinstance(now, int):
        yield from (now + 1, now - 1)
    else:
        yield from (now / 2 or 0.25, now * 1.5)
