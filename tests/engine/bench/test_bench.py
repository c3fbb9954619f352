"""The benchmarks exist, and a row reports its numbers and a broken promise. Nothing is timed here."""

from __future__ import annotations

import importlib
import json

import pytest

from engine.bench import BENCHES, BenchRow
from engine.bench.clock import PairedTimes, time_pair


@pytest.mark.parametrize("name", BENCHES)
def test_each_benchmark_has_its_own_module(name: str) -> None:
    module = importlib.import_module(f"engine.bench.{name.replace('-', '_')}")
    assert callable(module.measure) and module.__doc__


def test_a_row_shows_its_promise_and_whether_it_was_kept() -> None:
    row = BenchRow("x", {"s": 0.25}, {"s": 1.0}, 4.0, "at least 5 times", kept=False)
    assert row.words() == "ours s 0.25; peer s 1; ratio 4.00; at least 5 times: NOT KEPT"
    assert json.loads(json.dumps(row.json()))["kept"] is False


def test_c10_a_row_without_its_peer_names_the_command_that_installs_it() -> None:
    row = BenchRow("x", {"s": 0.25}, promise="faster", missing="pip install peer")
    assert row.words() == "ours s 0.25; faster: not compared: pip install peer" and row.kept is None


def test_the_ratio_compares_neighbouring_repeats() -> None:
    assert PairedTimes((1.0, 2.0, 1.0), (3.0, 6.0, 30.0)).ratio == 3.0  # one disturbed repeat does not count


def test_both_run_alternately_after_a_warm_up() -> None:
    calls: list[str] = []
    times = time_pair(lambda: calls.append("ours"), lambda: calls.append("peer"), repeats=2, warm_ups=1)
    assert calls == ["ours", "peer"] * 3 and len(times.ours) == len(times.peer) == 2
