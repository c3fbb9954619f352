"""The grid that ships: it has a result for every request, and an attack today gives the same result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import Damaged, NewerVersion
from engine.events import Judged, Pictured, Seen
from engine.examples import attacks
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec


def test_every_requested_attack_ships() -> None:
    shipped = attacks.attack_examples()
    assert [example.id for example in shipped] == [spec.id for spec in attacks.requested_specs()]
    for example in shipped:
        assert AttackSpec(**example.spec).id == example.id
        assert sum(isinstance(event, Seen) for event in example.events) == 1
        assert sum(isinstance(event, Judged) for event in example.events) == 1
        assert any(isinstance(event, Pictured) for event in example.events)


@pytest.mark.slow
def test_an_attack_today_gives_the_result_that_ships() -> None:
    for place in (0, 3, 6):  # the exact attack: on the baseline, and under two noises
        example = attacks.attack_examples()[place]
        actual = next(event for event in attack(AttackSpec(**example.spec)) if isinstance(event, Judged))
        shipped = next(event for event in example.events if isinstance(event, Judged))
        assert actual.state == shipped.state and actual.labels == shipped.labels
        assert actual.numbers["psnr"][0] == pytest.approx(shipped.numbers["psnr"][0], abs=0.5)


def test_an_unreadable_file_gives_no_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setattr(attacks, "RESULT_FILE", file)
    assert attacks.attack_examples() == ()
    for text in ("{", "[]", json.dumps({"format": 1, "made": "2026-01-01", "cells": [{"events": []}]})):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery leaks"):
            attacks.read(file)
    file.write_text(json.dumps({"format": 9, "made": "", "cells": []}), encoding="utf-8")
    with pytest.raises(NewerVersion):
        attacks.read(file)
