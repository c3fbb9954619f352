"""No tracked text holds a path of one machine, a registry's host or a word about how the work was organised."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FORBIDDEN = {  # written as patterns, so that this file does not hold the words itself
    "a path of one machine": r"(?<![\w./~}])/(work|root|home)(?![\w-]|\.\w)",
    "the host of a package registry": (
        r"pypi\.org|pythonhosted\.org|download\.pytorch\.org|registry\.npmjs\.org|deb\.debian\.org"
    ),
    "a word about how the work was organised": (
        r"[Ss]hared[ ]folder|\b(sub-?|coding |AI )agent|\b[Cc]laude\b|\b[Aa]nthropic\b|\b[Cc]opilot\b|\b[Cc]hat[G]PT\b"
        r"|\b(brief|design|style|privacy|methods|matrix|look|field)\.[m]d\b"
    ),
}
GENERATED = {"__pycache__", "node_modules"}


def _texts() -> dict[str, str]:
    """What git tracks or would track; every file, where this is a copy without git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = []
    paths = [ROOT / name for name in listed if name] or [*_walk(ROOT)]
    texts = {}
    for path in paths:
        if path.is_file() and path.stat().st_size < 1_000_000 and b"\0" not in (raw := path.read_bytes()):
            texts[path.relative_to(ROOT).as_posix()] = raw.decode("utf-8", errors="replace")
    return texts


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.name not in GENERATED and (path.name == ".ci" or not path.name.startswith(".")):
            yield from _walk(path)


def _spoken(text: str, pattern: str) -> list[tuple[int, str]]:
    return [(text.count("\n", 0, hit.start()) + 1, hit.group()) for hit in re.finditer(pattern, text)]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_text_holds(what: str) -> None:
    texts = _texts()
    assert {"pyproject.toml", "tests/rules/sources.py", "engine/environment.py"} <= texts.keys()
    breaches = [f"{path}:{line}: {word}" for path in texts for line, word in _spoken(texts[path], FORBIDDEN[what])]
    assert not breaches, f"{what}:\n" + "\n".join(breaches)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a path of one machine", "cd /" + "work/main"),
        ("a path of one machine", "'/" + "home/someone'"),
        ("a path of one machine", "in /" + "root."),
        ("the host of a package registry", "https://pypi" + ".org/simple"),
        ("a word about how the work was organised", "see the shared" + " folder"),
        ("a word about how the work was organised", "as privacy" + ".md says"),
    ],
)
def test_a_forbidden_text_is_found(what: str, text: str) -> None:
    assert _spoken(text, FORBIDDEN[what])


@pytest.mark.parametrize(
    "text", ["engine/work/x", "./work", "and/or", "/workers", "~/home", "https://example.org/root"]
)
def test_a_path_that_is_none_is_let_through(text: str) -> None:
    assert not _spoken(text, FORBIDDEN["a path of one machine"])
