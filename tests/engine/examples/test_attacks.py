"""The grid that ships: what was asked is what was told, and a run today says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import Damaged, NewerVersion
from engine.events import Judged, Pictured, Seen
from engine.examples import attacks
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec


def test_what_ships_answers_what_is_asked() -> None:
    shipped = attacks.leaks()
    assert [one.id for one in shipped] == [spec.id for spec in attacks.questions()]
    for one in shipped:
        assert AttackSpec(**one.spec).id == one.id
        assert sum(isinstance(event, Seen) for event in one.events) == 1
        assert sum(isinstance(event, Judged) for event in one.events) == 1
        assert any(isinstance(event, Pictured) for event in one.events)


@pytest.mark.slow
def test_an_attack_run_today_says_what_ships() -> None:
    for place in (0, 3, 6):  # the exact ones: undefended, and under two noises
        one = attacks.leaks()[place]
        today = next(event for event in attack(AttackSpec(**one.spec)) if isinstance(event, Judged))
        then = next(event for event in one.events if isinstance(event, Judged))
        assert today.state == then.state and today.labels == then.labels
        assert today.numbers["psnr"][0] == pytest.approx(then.numbers["psnr"][0], abs=0.5)


def test_what_cannot_be_read_is_no_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "told.json"
    monkeypatch.setattr(attacks, "TOLD", file)
    assert attacks.leaks() == ()
    for text in ("{", "[]", json.dumps({"format": 1, "made": "2026-01-01", "cells": [{"events": []}]})):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery leaks"):
            attacks.read(file)
    file.write_text(json.dumps({"format": 9, "made": "", "cells": []}), encoding="utf-8")
    with pytest.raises(NewerVersion):
        attacks.read(file)
