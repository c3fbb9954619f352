"""Class mode: the file is told what is wrong with it, and a visitor what is asked too much."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.session import limits as class_limits
from app.session.limits import CLASS, FILE, VisitorLimits, caps, read, refused, told
from engine.errors import BadInput
from engine.specs.run import RunSpec

TEXT = FILE.read_text(encoding="utf-8")
CAPS = VisitorLimits(runs=4, seeds=3, rounds=100, clients=200, sampled=50, epochs=10, waiting=60)
MANY = st.integers(0, 300)


def changed(folder: Path, old: str, new: str) -> Path:
    assert old in TEXT
    file = folder / "class.toml"
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    return file


@pytest.mark.parametrize(("said", "limited"), [("", False), ("0", False), ("1", True)])
def test_limits_hold_in_class_mode_alone(said: str, limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLASS, said)
    assert class_limits.class_mode() is limited
    assert caps() == (read(FILE) if limited else VisitorLimits())


def test_the_file_that_ships_lets_the_usual_question_through() -> None:
    found = read(FILE)
    assert {getattr(found, one.name) for one in fields(found)} != {None}
    usual = RunSpec(method="udp-fedavg")
    assert found.seeds
    assert refused(found, usual.canonical(), 0, 0, more=found.seeds + 1, seeds=found.seeds) is None


def test_nought_means_no_limit(tmp_path: Path) -> None:
    found = read(changed(tmp_path, "rounds = 100", "rounds = 0"))
    assert found.rounds is None
    assert refused(found, {"rounds": 10_000}, 0, 0) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rounds = 100", "rounds = -1", "class.toml: visitor: rounds: must be a whole number, 0 or more, got -1. Corr"),
        ("rounds = 100", "rounds = 1.5", "visitor: rounds: must be a whole number, 0 or more, got 1.5"),
        ("rounds = 100", "rounds = true", "visitor: rounds: must be a whole number, 0 or more, got true"),
        ("rounds = 100", 'rounds = "many"', "visitor: rounds: must be a whole number, 0 or more, got many"),
        ("rounds = 100", "", "class.toml: visitor: rounds: is missing. It must hold runs, seeds, rounds"),
        ("rounds = 100", "rounds = 100\nturns = 3", "class.toml: visitor: no turns. It holds runs, seeds, rounds"),
        ("rounds = 100", "rounds = ", "class.toml: Invalid value (at line 7, column 10). Write each line as: rounds ="),
        ("[visitor]", "[guest]", "class.toml: no guest. It holds visitor, machine"),
        ("[visitor]", "visitor = 3\n[visitors]", "class.toml: no visitors"),
        (
            "runs = 4",
            "runs = 3",
            "visitor: runs: must be more than the 3 seeds of a question, whose comparison is a run",
        ),
        ("seeds = 3", "seeds = 0", "visitor: runs: must be more than the unlimited seeds of a question"),
        ("gigabytes = 10", "gigabytes = inf", "machine: gigabytes: must be a number, 0 or more, got inf"),
        ("gigabytes = 10", "gigabytes = nan", "machine: gigabytes: must be a number, 0 or more, got nan"),
        ("names = []", 'names = ["http://lab"]', "machine: names: must be names as they stand in an address"),
        ("names = []", 'names = "*"', "machine: names: must be names as they stand in an address"),
        ("names = []", "names = [3]", "machine: names: must be names as they stand in an address, without http:// and"),
    ],
)
def test_a_wrong_entry_is_told(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refusal:
        read(changed(tmp_path, old, new))
    assert said in str(refusal.value)
    assert refusal.value.remedy


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"class\.toml: cannot be read: .*Put it back at"):
        read(tmp_path / "class.toml")


def test_names_and_numbers_are_read(tmp_path: Path) -> None:
    file = changed(tmp_path, "names = []", 'names = ["lab.example.org", "lab"]')
    file.write_text(file.read_text().replace("gigabytes = 10", "gigabytes = 0.5"))
    found = read(file)
    assert (found.names, found.gigabytes, found.workers) == (("lab.example.org", "lab"), 0.5, None)


@pytest.mark.parametrize(
    ("asked", "more", "said"),
    [
        (
            {"rounds": 101},
            {},
            "class mode: rounds must be at most 100, got 101. Choose 100 or fewer, or start LeakLens",
        ),
        ({"clients": 201}, {}, "clients must be at most 200, got 201"),
        ({"sampled": 51}, {}, "clients a round must be at most 50, got 51"),
        ({"epochs": 11}, {}, "local epochs must be at most 10, got 11"),
        ({}, {"seeds": 4}, "seeds must be at most 3, got 4"),
        ({}, {"mine": 4}, "may have at most 4 runs waiting or running, got 1 more beside 4. Wait until one of yours"),
        ({}, {"mine": 2, "more": 3}, "may have at most 4 runs waiting or running, got 3 more beside 2"),
        ({}, {"more": 5}, "may have at most 4 runs waiting or running, got 5 more. Wait"),
        ({}, {"waiting": 60}, "at most 60 runs may wait, of all visitors together, got 1 more beside 60. Try again"),
    ],
)
def test_what_is_too_much_is_told_kindly(asked: dict[str, Any], more: dict[str, int], said: str) -> None:
    trouble = refused(CAPS, asked, **{"mine": 0, "waiting": 0, **more})
    assert trouble
    assert said in str(trouble)
    assert trouble.remedy


@given(rounds=MANY, sampled=MANY, mine=MANY, waiting=MANY, more=st.integers(0, 9), seeds=st.integers(1, 9))
def test_what_is_within_every_limit_is_let_through_and_nothing_else(
    rounds: int, sampled: int, mine: int, waiting: int, more: int, seeds: int
) -> None:
    asked = {"rounds": rounds, "sampled": sampled, "method": {"name": "fedavg"}}
    fits = rounds <= 100 and sampled <= 50 and seeds <= 3
    room = not more or (mine + more <= 4 and waiting + more <= 60)
    assert (refused(CAPS, asked, mine, waiting, more, seeds) is None) == (fits and room)
    assert refused(VisitorLimits(), asked, mine, waiting, more, seeds) is None


def test_a_question_that_is_known_already_costs_nothing() -> None:
    assert refused(CAPS, {"rounds": 30}, mine=4, waiting=60, more=0) is None


def test_the_limits_are_told_in_words() -> None:
    assert told(CAPS).startswith("4 runs at once, 3 seeds, 100 rounds")
    assert told(VisitorLimits()) == "none"


def test_settings_know_neither_page_nor_torch() -> None:
    tree = ast.parse(Path(class_limits.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in modules if name and name.split(".")[0] in ("streamlit", "torch", "app")} == set()
