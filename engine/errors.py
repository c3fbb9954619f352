"""All errors of the project, in one tree. A message names the place, the rule and the value; a remedy is the fix.

LeakLensError
├── BadInput            a request that cannot be run             exit code 2
│   ├── UnknownName     a name that is on no shelf
│   └── MissingData     a data set that is not on this machine
├── HomeError           the home of all state cannot be used     exit code 2
│   ├── HomeUnwritable  no permission, or not a folder
│   ├── TooManyFiles    the limit of open files, in open_files.py
│   ├── HomeFull        no space, or over the quota
│   ├── Damaged         a store, checkpoint or payload that cannot be read
│   └── NewerVersion    written by a newer LeakLens than this one
├── RunFailed           a valid run that failed                  exit code 1
└── LeaseLost           another supervisor holds this run now    (never reaches a user)
"""

from __future__ import annotations

import json


class LeakLensError(Exception):
    """The root of the tree. The remedy is a field of its own, so that a page can show it separately."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        self.message = printable(message.rstrip("."))
        self.remedy = printable(remedy.rstrip("."))
        super().__init__(f"{self.message}. {self.remedy}." if remedy else self.message)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.remedy))


class BadInput(LeakLensError, ValueError):
    """A request that cannot be run."""

    exit_code = 2


class UnknownName(BadInput):
    """A name that is on no shelf."""


class MissingData(BadInput):
    """A data set that is not on this machine."""


class HomeError(LeakLensError):
    """The home of all state cannot be used."""

    exit_code = 2


class HomeUnwritable(HomeError):
    """No permission, or not a folder."""


class HomeFull(HomeError):
    """No space left, or over the quota."""


class Damaged(HomeError):
    """A store, checkpoint or payload that cannot be read."""


class NewerVersion(HomeError):
    """Written by a newer LeakLens than this one."""


class RunFailed(LeakLensError):
    """A valid run that failed."""


class LeaseLost(LeakLensError):
    """Another supervisor holds this run now."""


def refusal(who: str, rule: str, got: object, remedy: str = "") -> BadInput:
    """An error with the place, the rule and the value: `fedceo: every: must be between 1 and 50, got 0`."""
    return BadInput(f"{who}: {rule}, got {shown(got)}", remedy)


def shown(value: object) -> str:
    """A value as a user writes it, cut to 60 characters."""
    text = printable(_spelled(value))
    return text if len(text) <= 60 else text[:59] + "…"


def printable(text: str) -> str:
    """The text as one line that is safe to print, to hash and to write as JSON: other characters become escapes."""
    return "".join(_printable_character(character) for character in text)


def _printable_character(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _spelled(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return value if value and value == value.strip() else f'"{value}"'
    if isinstance(value, float):
        return float.__repr__(value).removesuffix(".0")
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"


def plain_number(value: float) -> str:
    """A number without an exponent: 0.0001, not 1e-04."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if value else "0"
