"""Scripts call the command line: commands, options, the keys of their JSON and the exit codes stay."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.goldens import entries
from tests.contracts.questions import LINES, REFUSED
from tests.contracts.record import answered, commands
from tests.contracts.shapes import both, fewer, misfits, options, shape

ANSWERS, REFUSALS = entries("commands", "answers"), entries("commands", "refusals")
OPTIONS: dict[str, dict[str, Any]] = entries("commands", "options")


def test_no_command_is_gone() -> None:
    assert OPTIONS.keys() <= commands().keys()


@pytest.mark.parametrize("name", OPTIONS)
def test_the_options_of_a_command_stay(name: str) -> None:
    assert fewer(options(commands()[name]), OPTIONS[name]) == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if LINES[name].slow else []) for name in ANSWERS]
)
def test_an_answer_keeps_its_keys_and_its_exit_code(name: str) -> None:
    answer = answered(LINES[name])
    assert misfits(answer["shape"], ANSWERS[name]["shape"]) == []
    assert (answer["line"], answer["code"]) == (ANSWERS[name]["line"], ANSWERS[name]["code"])


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_has_a_sentence_a_remedy_and_its_exit_code(name: str) -> None:
    answer = answered(REFUSED[name])
    assert answer == REFUSALS[name]
    assert answer["code"] == 2 and answer["shape"] == shape({"error": "it is wrong", "remedy": "Change it"})


# --- the comparison itself ---------------------------------------------------------------------------------

WAS: dict[str, Any] = {"id": "a", "rows": [{"n": 1, "why": None}, {"n": 2.5}], "parts": [{"name": "x", "ok": True}]}


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (WAS, []),
        ({**WAS, "more": 1}, []),
        ({**WAS, "rows": [{"n": 1}]}, []),
        ({"rows": WAS["rows"], "parts": WAS["parts"]}, ["it.id is gone"]),
        ({**WAS, "id": None}, ["it.id is null, and was string"]),
        ({**WAS, "rows": []}, ["it.rows is empty"]),
        ({**WAS, "rows": [{"why": None}]}, ["it.rows[].n is gone"]),
        ({**WAS, "parts": [{"name": "y", "ok": True}]}, ["it.parts.x is gone"]),
        ([WAS], ["it is array, and was object"]),
    ],
)
def test_a_change_is_reported(now: Any, changes: list[str]) -> None:
    assert misfits(shape(now), shape(WAS)) == changes


def test_an_array_of_arrays_has_a_shape() -> None:
    assert shape([[1], []]) == {"array": {"array": {"number": {}}}}
    assert both(shape(1), shape(None)) == {"null": {}, "number": {}}
