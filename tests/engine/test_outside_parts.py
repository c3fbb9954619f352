"""A package outside the repository brings parts by an entry point; a broken one hides nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import outside_parts
from engine.doctor import outside_parts_load
from engine.environment import CLASS, ROOT
from engine.methods import METHODS

PART = '''
"""A method of another package."""
from __future__ import annotations

from engine.methods.averaging.fedavg import FedAvg
from engine.methods.base import METHODS


@METHODS.add("foreign", title="Foreign", source="elsewhere")
class Foreign(FedAvg):
    """FedAvg under another name."""
'''


def package(folder: Path, name: str, code: str, module: str | None = None) -> None:
    """An installed package with one module and one entry point."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[leaklens.parts]\nmine = {module or name}\n", encoding="utf-8")


def command(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of the engine in a process that finds the packages of this folder."""
    own = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "LEAKLENS_HOME": str(folder / "home"), **environment}
    return subprocess.run(
        [sys.executable, "-m", "engine", *words],
        cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def names(answer: subprocess.CompletedProcess[str]) -> list[str]:
    return [row["name"] for row in json.loads(answer.stdout)]


@pytest.mark.slow
def test_a_part_of_another_package_is_listed_run_and_attacked(tmp_path: Path) -> None:
    package(tmp_path, "stranger", PART)
    assert "foreign" in names(command(tmp_path, "list", "methods", "--json"))
    small = [
        "--rounds",
        "1",
        "--clients",
        "6",
        "--sampled",
        "2",
        "--epochs",
        "1",
        "--batch",
        "100",
        "--set",
        "model.hidden=8",
    ]
    trained = command(tmp_path, "run", "--method", "foreign", *small, "--json")
    assert trained.returncode == 0, trained.stderr
    run = json.loads(trained.stdout)["id"]
    attacked = command(tmp_path, "attack", run, "--attack", "loss-threshold", "--json")
    assert attacked.returncode == 0 and json.loads(attacked.stdout)["status"] == "finished", attacked.stderr


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for packages that this process finds. Their modules and parts are removed afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(METHODS.names())  # imports them: what a test imports later counts as the stranger's
    outside_parts.import_all.cache_clear()
    yield tmp_path
    outside_parts.import_all.cache_clear()
    sys.modules.pop("stranger", None)
    for name in set(METHODS._parts) - before:
        del METHODS._parts[name]


def test_no_outside_part_is_imported_in_class_mode(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(stranger, "stranger", PART)
    monkeypatch.setenv(CLASS, "1")
    assert outside_parts.import_all() == () and "foreign" not in METHODS.names()
    monkeypatch.setenv(CLASS, "0")
    outside_parts.import_all.cache_clear()
    assert outside_parts.import_all() == () and "foreign" in METHODS.names()
    assert outside_parts.packages() == ("stranger",)


@pytest.mark.parametrize(
    ("code", "module", "reason"),
    [
        ("raise RuntimeError('broken')", None, "RuntimeError: broken"),
        ("", "not_there", "No module named 'not_there'"),
        ("raise SystemExit(3)", None, "SystemExit: 3"),
        (PART.replace('"foreign"', '"fedavg"'), None, "method fedavg is registered twice"),
        (PART + "raise RuntimeError('halfway')", None, "RuntimeError: halfway"),
    ],
)
def test_a_broken_package_is_reported_and_hides_nothing(
    stranger: Path, code: str, module: str | None, reason: str
) -> None:
    package(stranger, "stranger", code, module)
    finding = outside_parts_load()
    assert not finding.ok and "stranger: " in finding.text and reason in finding.text and finding.remedy
    assert {"fedavg", "fedceo"} <= set(METHODS.names()) and "foreign" not in METHODS.names()
    assert METHODS["fedavg"].__module__ == "engine.methods.averaging.fedavg"


def test_what_a_package_prints_is_no_part_of_an_answer(stranger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package(stranger, "stranger", PART + "print('hello')")
    assert outside_parts.import_all() == () and "foreign" in METHODS.names()
    written = capsys.readouterr()
    assert written.out == "" and "hello" in written.err
