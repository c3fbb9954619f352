"""A refactoring changes one module here: no other imports the project. Golden entries are added and never replaced."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.contracts import goldens
from tests.contracts.goldens import FOLDER, add, golden


def test_one_module_imports_the_project() -> None:
    importing = {file.name for file in FOLDER.glob("*.py") if {"app", "engine"} & imported(file)}
    assert importing == {"doors.py"}


def imported(file: Path) -> set[str]:
    """The first names of every module that a file imports."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def test_an_entry_is_added_and_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goldens, "FOLDER", tmp_path)
    assert add("some", "numbers", {"one": 1, "two": lambda: 2}) == [
        "some.json: numbers: one",
        "some.json: numbers: two",
    ]
    assert add("some", "numbers", {"one": 9, "three": 3}) == ["some.json: numbers: three"]
    assert add("some", "words", {"a": "ε"}) == ["some.json: words: a"]
    assert golden("some") == {"numbers": {"one": 1, "two": 2, "three": 3}, "words": {"a": "ε"}}
