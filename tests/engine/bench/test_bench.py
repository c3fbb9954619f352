"""Benches are never timed here: they exist, they tell what they measured, and a broken promise is said."""

from __future__ import annotations

import importlib
import json

import pytest

from engine.bench import BENCHES, BenchRow
from engine.bench.clock import Race, race


@pytest.mark.parametrize("name", BENCHES)
def test_each_bench_is_a_module_of_its_own(name: str) -> None:
    module = importlib.import_module(f"engine.bench.{name.replace('-', '_')}")
    assert callable(module.measure) and module.__doc__


def test_a_row_says_what_was_promised_and_whether_it_was_kept() -> None:
    row = BenchRow("x", {"s": 0.25}, {"s": 1.0}, 4.0, "at least 5 times", kept=False)
    assert row.words() == "ours s 0.25; peer s 1; ratio 4.00; at least 5 times: NOT KEPT"
    assert json.loads(json.dumps(row.json()))["kept"] is False


def test_the_ratio_compares_neighbouring_turns() -> None:
    assert Race((1.0, 2.0, 1.0), (3.0, 6.0, 30.0)).ratio == 3.0  # one disturbed turn does not count


def test_both_take_turns_after_a_warm_up() -> None:
    calls: list[str] = []
    found = race(lambda: calls.append("ours"), lambda: calls.append("peer"), turns=2, warm=1)
    assert calls == ["ours", "peer"] * 3 and len(found.ours) == len(found.peer) == 2
