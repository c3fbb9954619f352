"""The benchmark of the T-tSVD: its models, its result and its single thread. Nothing is timed here."""

from __future__ import annotations

import pytest
import torch

from engine.bench import t_tsvd as bench
from engine.bench.clock import PairedTimes
from engine.errors import BadInput


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(bench, "set_thread_modes", lambda: None)
    monkeypatch.setattr(bench, "SIDE", 12)
    monkeypatch.setattr(bench, "noisy_models", lambda: {"w": torch.eye(4).repeat(3, 1, 1), "b": torch.ones(3, 4)})


def test_the_models_are_ten_lenets_that_differ() -> None:
    stacks = bench.noisy_models()
    assert sum(stack[0].numel() for stack in stacks.values()) == 1_141_194 and len(stacks) == 10
    for stack in stacks.values():
        assert len(stack) == 10 and float(stack.std(0).mean()) == pytest.approx(bench.NOISE, rel=0.2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("seconds", "kept"), [(5.0, True), (4.9, False)])
def test_the_slower_threshold_counts(monkeypatch: pytest.MonkeyPatch, seconds: float, kept: bool) -> None:
    times = iter([PairedTimes((1.0,), (9.0,)), PairedTimes((1.0,), (seconds,))])
    monkeypatch.setattr(bench, "time_both", lambda stacks, threshold: next(times))
    row = bench.measure()
    assert row.ratio == seconds and row.kept is kept
    assert row.ours["error"] < 1e-6 and row.ours["condition"] == pytest.approx(1e6, rel=0.2)


@pytest.mark.usefixtures("small")
def test_a_wrong_result_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "time_both", lambda stacks, threshold: PairedTimes((1.0,), (9.0,)))
    monkeypatch.setattr(bench, "t_tsvd", lambda stack, threshold: stack)
    row = bench.measure()
    assert row.ours["error"] > 1e-3 and row.kept is False


def test_more_than_one_thread_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setattr(bench, "set_thread_modes", lambda: None)
    with pytest.raises(BadInput, match="OPENBLAS_NUM_THREADS must be 1, got 2"):
        bench.measure()
