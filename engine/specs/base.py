"""What the specs of runs and attacks share: the result format, the canonical JSON and the id.

A part raises its `result_format` when the same spec would give other results than before. It takes the next number of
the whole project, FORMAT + 1, so that the largest number of a spec's parts changes with each raise. A spec keeps the
format that it was written with, so a stored run keeps its id and stays readable. It cannot be computed again with
today's code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr

from engine.errors import BadInput, NewerVersion, refusal
from engine.part import Declared, Part, Problem, as_written

FORMAT = 4  # the newest result format of any part
ABSENT = object()


class Spec(Declared):
    """A request that has an id: a short hash of its canonical JSON."""

    remedy: ClassVar[str] = "Remove `format` to compute it as this version does"  # for an old format

    _written: int | None = PrivateAttr(default=None)  # the format of the file, if this version would write a newer one

    def __init__(self, /, **values: Any) -> None:
        written = _checked_format(self.label(), values.pop("format", ABSENT))
        super().__init__(**values)
        if written is not None and written < self.newest_format:
            self._written = written

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with these values, which are not validated, and with an id of its own."""
        copied = super().model_copy(update=update, deep=deep)
        for kept in ("text", "id"):
            copied.__dict__.pop(kept, None)
        return copied

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts whose results depend on their code."""
        return ()

    @property
    def newest_format(self) -> int:
        """The result format of this spec in this version."""
        return max((part.result_format(self) for part in self.parts), default=1)

    @property
    def format(self) -> int:
        """The result format that this spec was written with."""
        return self._written or self.newest_format

    def replay_problem(self) -> Problem | None:
        """Why this version cannot compute the spec again: it would give other results under the same id."""
        if self.format == self.newest_format:
            return None
        rule = f"{self.label()}: format: must be {self.newest_format} to be replayed, got {self.format}"
        return Problem(rule, self.remedy)

    def refuse_replay(self) -> None:
        problem = self.replay_problem()
        if problem:
            raise BadInput(problem.reason, problem.remedy)

    def canonical(self) -> dict[str, Any]:
        """The spec as JSON. Optional fields at their default are left out, so that ids survive new versions."""
        body: dict[str, Any] = json.loads(self.text)
        return body

    @cached_property
    def text(self) -> str:
        """The canonical JSON as text. A spec never changes, so it is written once."""
        return json.dumps(self.body(), allow_nan=False)

    def body(self) -> dict[str, Any]:
        """What the canonical JSON holds."""
        return {"format": self.format, **self.identity()}

    @cached_property
    def id(self) -> str:
        """A short hash of the canonical JSON, which includes the result format."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _checked_format(label: str, written: Any) -> int | None:
    if written is ABSENT:
        return None
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise refusal(f"{label}: format", "must be a whole number at least 1", as_written(written))
    if written > FORMAT:
        rule = f"{label}: the spec has format {written}, and this LeakLens reads formats up to {FORMAT}"
        raise NewerVersion(rule, "Update LeakLens to open it")
    return written


def problems_of(parts: Iterable[Part], spec: Spec) -> tuple[Problem, ...]:
    """The problems that these parts find in this spec."""
    return tuple(problem for part in parts for problem in part.problems(spec))
