"""c11: with any file of assets/ damaged or missing, every command answers in a sentence and `doctor` names the file."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from engine.errors import LeakLensError
from engine.examples import checksums, files
from engine.specs import presets
from engine.specs.run import RunSpec
from tests.damage_assets import ASSETS, copy_assets, damage_assets, empty_caches, read_from
from tests.engine.makers import SMALL, run_command

RAW = ("Traceback", "should not happen", "This is unexpected", "Error:", "object has no attribute", "object is not")
COMMANDS = {  # by what the damaged file begins with; the empty text stands for every file
    "": ("list tables", "gallery nothing"),
    "presets/tables": ("run --preset table-1-cifar10-noise-1-fedceo-growing-quick --dry-run", "table 1 --row x"),
    "presets/": ("run --preset {stem} --dry-run", "run --preset dp-sgd-open --dry-run --json"),
    "fashion": (f"run {SMALL} --dry-run",),
    "mnist": (f"run --dataset mnist {SMALL} --dry-run",),
    "cifar10": (f"run --dataset cifar10 {SMALL} --dry-run --json",),
    "movie": ("run --dataset movie-reviews --model lstm --dry-run",),
}


@pytest.fixture(autouse=True)
def own_caches(home: Path):
    yield
    empty_caches()


def ask(command: str) -> str:
    """The output of a command that ends with a documented exit code and without an internal error."""
    answer = run_command(command)
    output = answer.out + answer.err
    assert answer.code in (0, 1, 2), (command, output)
    raw = [word for word in RAW if word in output]
    assert not raw, f"{command}: {output}"
    return output


def check(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, listed: bool = True) -> int:
    """Damage a file and ask every command. Return the number of answers."""
    name = damage_assets(copy_assets(folder), seed, listed)
    read_from(folder, monkeypatch)
    commands = [command for start in COMMANDS if name.startswith(start) for command in COMMANDS[start]]
    for command in commands:
        ask(command.format(stem=Path(name).stem))
    findings = {finding["name"]: finding for finding in json.loads(ask("doctor --json"))}
    if listed and name in checksums.read(ASSETS):
        assert not findings["assets"]["ok"] and name in findings["assets"]["text"], (name, findings["assets"])
        assert "Restore" in findings["assets"]["remedy"]
    if name.startswith("presets/tables"):
        with suppress(LeakLensError):
            for cell in presets.cell_names():
                RunSpec(**presets.cell_preset(cell))
    return len(commands) + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_c11_damaged_assets_answer_in_sentences(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(tmp_path, seed, monkeypatch, listed=seed % 2 == 0)


@pytest.mark.long
def test_c11_hundreds_of_damaged_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000, 1300):
        check(tmp_path / str(seed), seed, monkeypatch, listed=seed % 2 == 0)


def test_c11_the_checksums_are_those_of_the_files() -> None:
    """After a change on purpose: python3 -m engine.examples.checksums."""
    assert list(checksums.differences(ASSETS)) == []


@pytest.mark.slow
def test_c11_a_damaged_example_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = copy_assets(tmp_path) / "gallery" / "dp-sgd.json"
    text = file.read_text(encoding="utf-8")
    file.unlink()
    file.write_text(text.replace('"accuracy"', '"accurate"', 1), encoding="utf-8")
    read_from(tmp_path, monkeypatch)
    assert "dp-sgd" not in [example.name for example in files.examples()]
    (error,) = files.load_errors()
    assert str(error) == (
        "gallery/dp-sgd.json: differs from the file that was published. "
        "Make it again: python3 -m engine gallery dp-sgd."
    )
    assert "gallery/dp-sgd.json" in ask("doctor")
