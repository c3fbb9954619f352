"""Class mode: errors in the file, and requests beyond the limits of a visitor."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.session import limits as class_limits
from app.session.limits import FILE, VisitorLimits, caps, read, refused
from app.session.limits import limits_text as limits_text
from engine.environment import CLASS
from engine.errors import BadInput
from engine.specs.run import RunSpec

TEXT = FILE.read_text(encoding="utf-8")
CAPS = VisitorLimits(runs=4, seeds=3, rounds=100, clients=200, sampled=50, epochs=10, waiting=60)
COUNTS = st.integers(0, 300)


def changed(folder: Path, old: str, new: str) -> Path:
    assert old in TEXT
    file = folder / "class.toml"
    file.write_text(TEXT.replace(old, new), encoding="utf-8")
    return file


@pytest.mark.parametrize(("value", "limited"), [("", False), ("0", False), ("1", True)])
def test_limits_apply_in_class_mode_only(value: str, limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLASS, value)
    assert class_limits.class_mode() is limited
    assert caps() == (read(FILE) if limited else VisitorLimits())


def test_the_shipped_file_allows_the_default_run() -> None:
    limits = read(FILE)
    assert {getattr(limits, field.name) for field in fields(limits)} != {None}
    spec = RunSpec(method="udp-fedavg")
    assert limits.seeds
    assert refused(limits, spec.canonical(), 0, 0, more=limits.seeds + 1, seeds=limits.seeds) is None


def test_zero_means_no_limit(tmp_path: Path) -> None:
    limits = read(changed(tmp_path, "rounds = 100", "rounds = 0"))
    assert limits.rounds is None
    assert refused(limits, {"rounds": 10_000}, 0, 0) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
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
            "visitor: runs: must be more than the 3 seeds of a request, because its baseline is a run",
        ),
        ("seeds = 3", "seeds = 0", "visitor: runs: must be more than the unlimited seeds of a request"),
        ("gigabytes = 10", "gigabytes = inf", "machine: gigabytes: must be a number, 0 or more, got inf"),
        ("gigabytes = 10", "gigabytes = nan", "machine: gigabytes: must be a number, 0 or more, got nan"),
        ("names = []", 'names = ["http://lab"]', "machine: names: must be host names, without http:// and port"),
        ("names = []", 'names = "*"', "machine: names: must be host names, without http:// and port"),
        (
            "frames = []",
            'frames = ["moodle.example.org"]',
            "machine: frames: must be addresses of pages, with https://",
        ),
        (
            "frames = []",
            'frames = ["https://x.org/path"]',
            "machine: frames: must be addresses of pages, with https://",
        ),
        ("frames = []", 'frames = ["*"]', "machine: frames: must be addresses of pages, with https://"),
        ("names = []", "names = [3]", "machine: names: must be host names, without http:// and port, got 3"),
    ],
)
def test_a_wrong_entry_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read(changed(tmp_path, old, new))
    assert message in str(error.value)
    assert error.value.remedy


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"class\.toml: cannot be read: .*Put it back at"):
        read(tmp_path / "class.toml")


def test_names_and_numbers_are_read(tmp_path: Path) -> None:
    file = changed(tmp_path, "names = []", 'names = ["lab.example.org", "lab"]')
    file.write_text(file.read_text().replace("gigabytes = 10", "gigabytes = 0.5"))
    limits = read(file)
    assert (limits.names, limits.gigabytes, limits.workers) == (("lab.example.org", "lab"), 0.5, None)


@pytest.mark.parametrize(
    ("fields", "others", "message"),
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
        (
            {},
            {"own": 4},
            "may have at most 4 runs waiting or running, got 1 more next to 4. Wait until one of your",
        ),
        ({}, {"own": 2, "more": 3}, "may have at most 4 runs waiting or running, got 3 more next to 2"),
        ({}, {"more": 5}, "may have at most 4 runs waiting or running, got 5 more. Wait"),
        ({}, {"waiting": 60}, "the queue holds at most 60 runs of all visitors, got 1 more next to 60. Try again"),
    ],
)
def test_a_request_beyond_a_limit_is_refused(fields: dict[str, Any], others: dict[str, int], message: str) -> None:
    refusal = refused(CAPS, fields, **{"own": 0, "waiting": 0, **others})
    assert refusal
    assert message in str(refusal)
    assert refusal.remedy


@given(rounds=COUNTS, sampled=COUNTS, own=COUNTS, waiting=COUNTS, more=st.integers(0, 9), seeds=st.integers(1, 9))
def test_a_request_is_refused_if_and_only_if_it_exceeds_a_limit(
    rounds: int, sampled: int, own: int, waiting: int, more: int, seeds: int
) -> None:
    spec = {"rounds": rounds, "sampled": sampled, "method": {"name": "fedavg"}}
    fits = rounds <= 100 and sampled <= 50 and seeds <= 3
    room = not more or (own + more <= 4 and waiting + more <= 60)
    assert (refused(CAPS, spec, own, waiting, more, seeds) is None) == (fits and room)
    assert refused(VisitorLimits(), spec, own, waiting, more, seeds) is None


def test_a_request_without_new_runs_is_always_allowed() -> None:
    assert refused(CAPS, {"rounds": 30}, own=4, waiting=60, more=0) is None


def test_the_limits_as_text() -> None:
    assert limits_text(CAPS).startswith("4 runs at once, 3 seeds, 100 rounds")
    assert limits_text(VisitorLimits()) == "none"


def test_limits_import_neither_streamlit_nor_torch() -> None:
    tree = ast.parse(Path(class_limits.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in modules if name and name.split(".")[0] in ("streamlit", "torch", "app")} == set()
