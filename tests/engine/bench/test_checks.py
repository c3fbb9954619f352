"""c11: `bench fuzz` and `bench faults` with small counts, and what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.bench import CHECKS, fuzz, measure
from engine.errors import BadInput
from engine.jobs.status import mapping
from engine.jobs.store import Store
from tests.engine.makers import run_command, tiny_spec


@pytest.mark.slow
def test_c11_damaged_stores_and_specs_answer_in_sentences(home: Path) -> None:
    row = measure("fuzz", main, count=60, seed=1)
    assert row.kept, row
    assert row.ours["answers"] >= 60


def test_c11_fuzzed_specs_are_specs_or_refused() -> None:
    assert fuzz.fuzz_specs(200, 1000) == []


@pytest.mark.slow
def test_c11_the_same_seed_asks_the_same(home: Path) -> None:
    assert measure("fuzz", main, count=20, seed=9) == measure("fuzz", main, count=20, seed=9)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_c11_a_stored_number_that_is_not_finite_is_damage(number: str, home: Path) -> None:
    spec = tiny_spec()
    with Store()._database.write() as connection:
        assert mapping(f'{{"noise": {number}}}') is None
        values = (spec.id, f'{{"noise": {number}}}')
        connection.execute("INSERT INTO runs (id, spec, options, attempt, edition) VALUES (?, ?, '{}', 1, 'a')", values)
    (listed,) = run_command("runs --json").json
    assert listed["status"] == "damaged"


def test_c11_only_the_checks_have_a_count_and_a_seed() -> None:
    answer = run_command("bench dp-step --count 3")
    assert answer.code == 2
    assert answer.sentence().startswith("bench dp-step: count: only fuzz and faults have these options.")
    for name in CHECKS:
        with pytest.raises(BadInput, match="must be at least 1, got 0"):
            measure(name, main, count=0)


@pytest.mark.slow
def test_c11_kills_lose_nothing(home: Path) -> None:
    row = measure("faults", count=1, seed=1)
    assert row.kept and row.ours == {"worker": 0, "server": 1, "command": 0, "wrong": 0}


@pytest.mark.long
def test_c11_thousands_of_answers(home: Path) -> None:
    """`bench fuzz` asks for 20,000."""
    assert measure("fuzz", main, count=2000, seed=10_000).kept


@pytest.mark.long
def test_c11_more_kills_lose_nothing(home: Path) -> None:
    """`bench faults` kills 300 times, which takes most of an hour."""
    answer = run_command("bench faults --seed 1 --count 9 --json")
    (row,) = json.loads(answer.out.splitlines()[-1])
    assert row["kept"], answer.out
