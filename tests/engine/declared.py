"""From a part's own declaration: the same part with one field changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from engine.part import Part


def changed(part: Part) -> Iterator[Part]:
    """For each field of the part, a part in which only that field has another legal value."""
    for name, field in type(part).model_fields.items():
        now = getattr(part, name)
        yield type(part)(**{name: _other(now, get_args(field.annotation))})


def _other(now: Any, choices: tuple[Any, ...]) -> Any:
    if isinstance(now, bool):
        return not now
    if isinstance(now, str):
        return next(choice for choice in choices if choice != now)
    return now + 1 if isinstance(now, int) else now / 2 or 0.25
