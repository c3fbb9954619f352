"""Small questions that run in a fraction of a second, and the parts of them that tests look at."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

import pytest

from engine.__main__ import main
from engine.errors import BadInput
from engine.events import Event, Kept, Measured, Round, encode
from engine.part import Part
from engine.specs.run import RunSpec

TINY: dict[str, Any] = {"rounds": 2, "clients": 40, "sampled": 6, "epochs": 1, "batch": 100, "seed": 3}


def tiny(**changes: Any) -> RunSpec:
    return RunSpec(**{**TINY, **changes})


def told(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What must be the same in every replay: all but seconds, progress and checkpoints, which follow the clock."""
    kept = []
    for event in events:
        if isinstance(event, Kept) and event.kind == "checkpoint":
            continue
        if isinstance(event, Round) and event.fraction:
            continue
        body = {key: value for key, value in encode(event).items() if key != "seconds"}
        if isinstance(event, Kept) and event.payload is not None:
            body["payload"] = {name: array.tobytes() for name, array in event.payload.items()}
        kept.append(body)
    return kept


def accuracies(events: Iterable[Event], who: str = "global") -> list[float | None]:
    return [one.value for one in events if isinstance(one, Measured) and one.name == "accuracy" and one.who == who]


SMALL = "--rounds 2 --clients 40 --sampled 4 --epochs 1 --batch 100"  # of a run that is over in a moment


@dataclass(frozen=True)
class CommandAnswer:
    """What came back: the exit code, and what went to the two streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one line of JSON that a script reads."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out, parse_constant=_refuse)

    def sentence(self) -> str:
        """The one line that a person reads after a refusal."""
        assert self.err.endswith(".\n") or ", got " in self.err, self
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err
        return self.err.strip()


def ask(line: str, *more: str) -> CommandAnswer:
    """A line as a shell takes it apart, and words that no shell has seen."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*shlex.split(line), *more])
        except SystemExit as end:  # how argparse leaves
            code = int(end.code or 0)
    return CommandAnswer(code, out.getvalue(), err.getvalue())


def _refuse(word: str) -> NoReturn:
    pytest.fail(f"JSON holds {word}")


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
