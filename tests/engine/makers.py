"""Small runs that take a fraction of a second, commands, and the parts of their results that tests compare."""

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
from engine.training.plan import LoadedPlan

TINY: dict[str, Any] = {"rounds": 2, "clients": 40, "sampled": 6, "epochs": 1, "batch": 100, "seed": 3}


def tiny_spec(**changes: Any) -> RunSpec:
    return RunSpec(**{**TINY, **changes})


def with_noise_of(plan: LoadedPlan, other: LoadedPlan) -> LoadedPlan:
    """The plan, changed so that it draws the noise of another run: only so can a test compare two methods exactly."""
    plan.__dict__["seeds"] = other.seeds
    return plan


def replayable(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What must be equal in every replay: everything except seconds, progress and checkpoints, which vary with time."""
    bodies = []
    for event in events:
        if isinstance(event, Kept) and event.kind == "checkpoint":
            continue
        if isinstance(event, Round) and event.fraction:
            continue
        body = {key: value for key, value in encode(event).items() if key != "seconds"}
        if isinstance(event, Kept) and event.payload is not None:
            body["payload"] = {name: array.tobytes() for name, array in event.payload.items()}
        bodies.append(body)
    return bodies


def accuracies(events: Iterable[Event], who: str = "global") -> list[float | None]:
    measured = [event for event in events if isinstance(event, Measured)]
    return [event.value for event in measured if event.name == "accuracy" and event.who == who]


SMALL = "--rounds 2 --clients 40 --sampled 4 --epochs 1 --batch 100"  # options of a run that takes a moment


@dataclass(frozen=True)
class CommandAnswer:
    """The result of a command: its exit code and its output on the two streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The single line of JSON that a script reads."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out, parse_constant=_refuse)

    def sentence(self) -> str:
        """The single line that a user reads after a refusal."""
        assert self.err.endswith(".\n") or ", got " in self.err, self
        assert self.err.count("\n") == 1, self
        assert "Traceback" not in self.err
        return self.err.strip()


def run_command(line: str, *more: str) -> CommandAnswer:
    """Run a command line, split as a shell splits it; `more` are further arguments as they are."""
    out = io.StringIO()
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*shlex.split(line), *more])
        except SystemExit as end:  # argparse exits this way
            code = int(end.code or 0)
    return CommandAnswer(code, out.getvalue(), err.getvalue())


def _refuse(constant: str) -> NoReturn:
    pytest.fail(f"JSON holds {constant}")


def parts_with_one_change(part: Part) -> Iterator[Part]:
    """For each field of the part, a part in which only that field has another legal value."""
    for name, field in type(part).model_fields.items():
        current = getattr(part, name)
        yield _legal(part, name, _others(current, get_args(field.annotation)))


def _legal(part: Part, name: str, values: Iterator[Any]) -> Part:
    for value in values:
        with suppress(BadInput):
            return type(part)(**{name: value})
    raise AssertionError(f"no other legal value of {name} was found")


def _others(current: Any, choices: tuple[Any, ...]) -> Iterator[Any]:
    if isinstance(current, bool):
        yield not current
    elif isinstance(current, str):
        yield from (choice for choice in choices if choice != current)
    elif current is None:
        yield 0.25
    elif isinstance(current, int):
        yield from (current + 1, current - 1)
    else:
        yield from (current / 2 or 0.25, current * 1.5)
