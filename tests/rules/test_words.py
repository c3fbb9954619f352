"""Words that comments, docstrings, messages and documents never use, and variables that say nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import ROOT, SOURCES, TESTS, Source, unexpected

BANNED: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))["banned"]
EMPTY_NAMES = {"told", "said", "found", "one", "asked", "thing"}
# A line break may split a phrase.
PHRASES = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in BANNED)
PATTERN = re.compile(rf"\b({PHRASES})\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`")  # names quoted in prose
DOCUMENTS = ("README.md", "CHANGELOG.md", "*/README.md", "assets/docs/*.md", ".github/*.md")


def prose(source: Source) -> Iterator[tuple[int, str]]:
    """Comments, and strings that hold more than one word: a lone word is a key or a name."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def word_breaches(source: Source) -> Iterator[str]:
    for line, text in prose(source):
        for match in PATTERN.finditer(CODE.sub("", text)):
            word = " ".join(match.group().lower().split())
            yield f"{line}: {word} (write: {BANNED[word]})"


def variable_breaches(source: Source) -> Iterator[str]:
    """Variables and parameters inside functions whose name is neither a type nor a role."""
    for function in source.functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES:
                yield f"{node.lineno}: {node.id} in {function.name}"
            if isinstance(node, ast.arg) and node.arg in EMPTY_NAMES:
                yield f"{node.lineno}: {node.arg} in {function.name}"
            if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name in EMPTY_NAMES:
                yield f"{node.lineno}: {node.name} in {function.name}"


def test_code_uses_plain_words() -> None:
    files = {**SOURCES, **TESTS}
    own = "tests/rules/test_words.py"
    breaches = {path: list(word_breaches(source)) for path, source in files.items() if path != own}
    assert not (problem := unexpected((path for path in breaches if breaches[path]), "words")), (
        f"\n{problem}\n{details(breaches)}"
    )


def test_variables_have_names_of_type_or_role() -> None:
    files = {**SOURCES, **TESTS}
    breaches = {path: list(variable_breaches(source)) for path, source in files.items()}
    assert not (problem := unexpected((path for path in breaches if breaches[path]), "variables")), (
        f"\n{problem}\n{details(breaches)}"
    )


def details(breaches: dict[str, list[str]]) -> str:
    return "\n".join(f"{path}:{breach}" for path, some in breaches.items() for breach in some[:3])


@pytest.mark.parametrize(
    "file",
    sorted({path for glob in DOCUMENTS for path in ROOT.glob(glob)}),
    ids=lambda file: file.relative_to(ROOT).as_posix(),
)
def test_documents_use_plain_words(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    breaches = [f"{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in PATTERN.finditer(text)]
    assert not breaches, f"{file.relative_to(ROOT)}:\n" + "\n".join(breaches)


def test_breaches_are_found() -> None:
    def breaches(text: str) -> list[str]:
        return list(word_breaches(Source("engine/a.py", text)))

    assert len(breaches("# Nobody knows.")) == 1
    assert len(breaches("raise Error('the run is told anew')")) == 2
    assert len(breaches('text = """The run is\\n    told."""')) == 1
    assert breaches("params = {'twin': twin}") == []
    assert list(variable_breaches(Source("engine/a.py", "def f(asked):\n    for one in asked: ..."))) == [
        "1: asked in f",
        "2: one in f",
    ]
    assert not list(variable_breaches(Source("engine/a.py", "def f(specs):\n    for spec in specs: ...")))
