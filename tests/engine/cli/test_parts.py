"""The command `list` as Markdown, and what it refuses. The lists themselves are tested with the other commands."""

from __future__ import annotations

import pytest

from engine.cli.parts import TABLES, table
from engine.methods import METHODS
from engine.registry import SHELVES
from tests.engine.makers import run_command


@pytest.mark.parametrize("shelf", [*SHELVES, TABLES])
def test_the_document_holds_each_shelf(shelf: str) -> None:
    section = run_command(f"list {shelf} --markdown").out
    assert section.startswith("## ")
    assert section in run_command("list --markdown").out + "\n"


def test_a_method_is_listed_with_every_parameter() -> None:
    section = run_command("list methods --markdown").out
    for method in METHODS:
        for name in method().values():
            assert f"| `{method.name}` | `{name}` |" in section


def test_a_rule_and_a_default_are_shown() -> None:
    assert (
        "| `dirichlet` | `alpha` | 0.5 | a number above 0 and at most 1000000 |" in run_command("list --markdown").out
    )


def test_a_bar_in_a_text_does_not_end_its_cell() -> None:
    assert list(table(("a",), [("‖x|y",)])) == ["| a |", "| --- |", "| ‖x\\|y |"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("list", "list: the following arguments are required: shelf"),
        ("list --markdown --json", "list: --json and --markdown: choose one of them"),
    ],
)
def test_what_it_cannot_answer_is_refused(words: str, sentence: str) -> None:
    answer = run_command(words)
    assert answer.code == 2
    assert sentence in answer.err
