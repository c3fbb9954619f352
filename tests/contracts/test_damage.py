"""c01: whatever is damaged in a store, every command answers in a sentence and every other run is listed.

Each seed damages the home of version 0.4.0 in one to three places.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.goldens import entries
from tests.contracts.homes import copied
from tests.damage import damage_store
from tests.engine.makers import run_command

RUNS = {known["id"] for known in entries("home", "runs").values()}
ROOT = Path(__file__).parents[2]
ASKED = ("export {run} --out {out}", "export {run} --out {out} --json", "cancel {run}", "cancel {run} --json")


def asked(command: str) -> str:
    """The output of a command that ends with a documented exit code and without an internal error."""
    answer = run_command(command)
    output = answer.out + answer.err
    assert answer.code in (0, 1, 2), command
    assert "Traceback" not in output and "should not happen" not in output, f"{command}: {output}"
    return output


def check(home: Path, seed: int, out: Path) -> int:
    """Ask everything about the damaged runs, then delete them; return the number of answers."""
    damaged = damage_store(home / "leaklens.db", seed)
    asked_of = [line.format(run=run, out=out) for run in sorted(damaged) for line in ASKED]
    for command in ("runs --json", *asked_of, "doctor --json"):
        asked(command)
    listed = asked("runs")
    assert {run for run in RUNS if run in listed} >= RUNS - damaged
    for run in sorted(damaged):
        asked(f"delete {run}")
    assert {run for run in RUNS if run in asked("runs")} >= RUNS - damaged
    return 4 + len(asked_of) + len(damaged)


# Damaged parts, classes, numbers and formats of one run: each of these exports once ended in a raw error.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(20), 1088, 1117, 1191, 1294, 1315])
def test_c01_a_damaged_store_answers_in_sentences(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = copied(tmp_path)
    monkeypatch.setenv("LEAKLENS_HOME", str(home))
    check(home, seed, tmp_path / "page.html")


@pytest.mark.long
def test_c01_thousands_of_answers_of_damaged_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = 0
    for seed in range(1000, 1400):
        home = copied(tmp_path / str(seed))
        monkeypatch.setenv("LEAKLENS_HOME", str(home))
        answers += check(home, seed, tmp_path / "page.html")
    assert answers > 4000


def ask_process(home: Path, line: str) -> str:
    """The same answer from a process of its own, as a user gets it."""
    command = [sys.executable, "-m", "engine", *line.split()]
    environment = {**os.environ, "LEAKLENS_HOME": str(home)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    output = ended.stdout + ended.stderr
    assert ended.returncode in (0, 1, 2), (line, output)
    raw = [word for word in ("Traceback", "should not happen", "KeyError", "TypeError", "Warning") if word in output]
    assert not raw, f"{line}: {output}"
    return output


def check_processes(home: Path, seed: int) -> int:
    """Damage a home, and ask three processes about it; return the number of answers."""
    damaged = damage_store(home / "leaklens.db", seed)
    listed = ask_process(home, "runs")
    assert {run for run in RUNS if run in listed} >= RUNS - damaged
    run = min(damaged)
    ask_process(home, f"export {run} --out {home / 'page.html'} --json")
    ask_process(home, f"delete {run}")
    return 3


@pytest.mark.slow
def test_c11_a_process_answers_in_sentences(tmp_path: Path) -> None:
    check_processes(copied(tmp_path), 1088)


@pytest.mark.long
def test_c11_two_hundred_answers_of_processes(tmp_path: Path) -> None:
    answers = 0
    for seed in range(2000, 2070):
        answers += check_processes(copied(tmp_path / str(seed)), seed)
    assert answers >= 200
