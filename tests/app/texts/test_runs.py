"""Times, sizes and settings as the Runs screen shows them."""

from __future__ import annotations

from typing import Any

import pytest

from app.texts import runs as run_texts

NOW = 1_763_500_000.0  # a day in November 2025


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (-5, "just now"),
        (10, "just now"),
        (60, "a minute ago"),
        (150, "2 minutes ago"),
        (3600, "an hour ago"),
        (3 * 3600, "3 hours ago"),
        (25 * 3600, "yesterday"),
        (4 * 86400, "4 days ago"),
    ],
)
def test_times_are_relative(passed: float, shown: str) -> None:
    assert run_texts.ago(NOW - passed, NOW) == shown


def test_long_ago_has_a_date() -> None:
    assert run_texts.ago(NOW - 60 * 86400, NOW).endswith("2025")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_234, "1.23 kB"), (999_900, "1 MB"), (5_000_500, "5 MB"), (2.5e9, "2.5 GB")],
)
def test_sizes_are_small_numbers(count: float, shown: str) -> None:
    assert run_texts.size(count) == shown


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"rounds": 3}, "A method trains a model: 3 rounds"),
        ({"method": "fedavg", "model": {"name": "mlp"}, "dataset": "mnist"}, "fedavg trains mlp on mnist"),
        ({"method": {"name": "udp", "noise": 0.5}}, "udp with noise 0.5 trains a model"),
        ({"method": {"name": "udp", "noise": 0.0}}, "udp without noise trains a model"),
        (
            {"method": {"name": "udp", "noise": 1.0}, "target-epsilon": 4.0, "view": "server"},
            "udp at ε 4 (seen by the server) trains a model",
        ),
        (
            {"clients": 1000, "sampled": 10, "seed": 7, "partition": {"name": "dirichlet", "alpha": 0.3}},
            "A method trains a model: 1,000 clients (dirichlet, alpha 0.3), 10 a round, seed 7",
        ),
        ({}, run_texts.UNREADABLE),
    ],
)
def test_the_settings_of_a_run_are_one_sentence(spec: dict[str, Any], shown: str) -> None:
    assert run_texts.sentence(spec, lambda part, name: name) == shown


def test_a_nearly_full_home_has_a_remedy() -> None:
    assert "raise LEAKLENS_QUOTA_GB" in run_texts.store_summary({"finished": 2}, 0.95e9, 1e9)
    assert "raise" not in run_texts.store_summary({"finished": 2}, 0.5e9, 1e9)
    assert run_texts.store_summary({}, 0, 1e9) == "The home holds 0 bytes of the 1 GB allowed."
