"""The command line as a test asks it: in this process, with its answer in three parts."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from engine.__main__ import main

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
