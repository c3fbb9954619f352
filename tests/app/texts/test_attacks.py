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
