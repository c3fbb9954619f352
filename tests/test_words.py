"""The README keeps its word: every part stands in it, its file is the real file, its commands and snippets work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.attacks import ATTACKS
from engine.cli.main import parser
from engine.datasets import DATASETS
from engine.methods import METHODS
from engine.metrics import METRICS
from engine.models import MODELS
from engine.partitions import PARTITIONS
from engine.registry import Shelf
from engine.results.report import lines, report
from engine.specs.run import RunSpec
from engine.training.loop import run
from tests.pins import direct_pins

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELVES: tuple[Shelf, ...] = (METHODS, MODELS, DATASETS, PARTITIONS, ATTACKS, METRICS)


@pytest.mark.parametrize("shelf", SHELVES, ids=lambda shelf: shelf.noun)
def test_every_part_is_told(shelf: Shelf) -> None:
    rows = " ".join(line for line in README.splitlines() if line.startswith(f"| {shelf.noun} `"))
    assert set(shelf.names()) == set(re.findall(r"`([a-z0-9-]+)`", rows)) & set(shelf.names())


def test_the_method_shown_is_the_real_file() -> None:
    shown = README.split("<!-- fedavg -->\n```python\n")[1].split("```\n<!-- /fedavg -->")[0]
    assert shown == (ROOT / "engine/methods/averaging/fedavg.py").read_text(encoding="utf-8")


def test_every_command_is_told() -> None:
    table = README.split("## The command line")[1].split("`run --json` prints")[0]
    commands = next(action.choices for action in parser()._actions if action.choices and action.dest == "command")
    assert commands
    assert {name for name in commands if f"`{name}" not in table} == set()


def test_every_pin_has_its_reason() -> None:
    reasons = README.split("## Why these dependencies")[1].split("## Changes")[0]
    for pins in direct_pins(ROOT / "pyproject.toml"):
        names = [pin.partition("==")[0] for pin in pins]
        assert names and {name for name in names if name not in reasons} == set()


def test_the_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    snippet = next(text for text in snippets if text.startswith("from engine.training.loop import run"))
    exec(compile(snippet, "README", "exec"), {"__name__": "readme"})
    assert "Finished(rounds=3" in capsys.readouterr().out


def test_the_answer_shown_is_the_real_answer() -> None:
    shown = README.split("$ python3 -m engine run --method udp-fedavg --rounds 20\n")[1].split("\n\n")[0]
    body = report(run(RunSpec(method="udp-fedavg", rounds=20), threads=2))
    real = list(lines({**body, "status": "finished"}))
    for line, printed in zip(real, shown.splitlines(), strict=True):
        assert line.startswith(printed.removeprefix("    ").removesuffix("..."))
