"""The sentences about an attacked upload compare it with the run's own."""

from __future__ import annotations

from typing import Any

import pytest

from app.texts import attacks as attack_texts

PROBE: dict[str, Any] = {
    "probe": True, "pictures": 1, "steps": 1, "trained": 0, "upload": "listed", "own-pictures": 120, "own-steps": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "easier for an attacker than an ordinary upload: in this run the same client sends 120 pictures in 8"),
        ({"pictures": 8, "steps": 8}, "8 pictures alone in an upload"),
        ({"pictures": 8, "own-pictures": 8}, "For comparison: in this run the same client sends 8 pictures in 8 local"),
        ({"upload": "ordinary", "pictures": 120}, "120 pictures in an upload"),
        ({"upload": "ordinary", "pictures": 120}, "That is an ordinary upload of this run, with the chosen picture"),
        ({"upload": "cheat", "pictures": 120}, "but for the model, which the server changed"),
    ],
)
def test_a11_an_upload_is_compared_with_the_runs_own(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in attack_texts.realistic({**PROBE, **changes}, "server")


def test_a11_nothing_is_said_of_how_realistic_a_recorded_upload_is() -> None:
    recorded = {name: value for name, value in PROBE.items() if not name.startswith(("own", "upload"))}
    text = attack_texts.realistic({**recorded, "probe": False, "pictures": 120, "steps": 8}, "server")
    assert text == (
        "What was seen: 120 pictures in an upload, 8 local steps, a model no one trained yet, read by the server."
    )


def test_the_easiest_case_says_what_the_same_client_sends() -> None:
    text = attack_texts.easiest({"own-pictures": 300, "own-steps": 10})
    assert text.endswith("Without protection the same client sends 300 pictures in 10 local steps.")
    assert attack_texts.easiest({"own-pictures": 5, "own-steps": 1}).endswith("5 pictures in 1 local step.")
    assert (
        attack_texts.easiest({"own-pictures": 1, "own-steps": 2}) == attack_texts.EASIEST
    )  # it is an ordinary upload, too


def test_attacks_that_did_not_run_are_not_said_to_have_run() -> None:
    assert "requested here" not in attack_texts.stored(3, 0, 12, "2026-01-02")
    assert attack_texts.stored(3, 4, 12, "2026-01-02").endswith("4 were requested here.")
    assert attack_texts.stored(12, 0, 12, "2026-01-02") == "A stored example, run on 2026-01-02."


def test_an_attack_under_a_budget_is_named_by_its_budget() -> None:
    run = {"method": {"name": "udp-fedavg", "noise": 1.0}, "target-epsilon": 10, "view": "server"}
    spec = {"run": run, "pictures": ["test-0"], "round": "first"}
    assert "UDP-FedAvg at ε 10, first round" in attack_texts.row_title(spec, "An attack", "UDP-FedAvg")
    del run["target-epsilon"]
    assert "UDP-FedAvg noise 1, first round" in attack_texts.row_title(spec, "An attack", "UDP-FedAvg")


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (None, ""),
        (0.0, "no noise"),
        (0.00002, "noise / signal 0.00002"),
        (0.254, "noise / signal 0.25"),
        (9.96, "noise / signal 10"),
        (497.0, "noise / signal 500"),
        (54_321.0, "noise / signal 54,000"),
    ],
)
def test_the_noise_over_signal_is_a_plain_number(ratio: float | None, words: str) -> None:
    assert attack_texts.loudness(ratio) == words
