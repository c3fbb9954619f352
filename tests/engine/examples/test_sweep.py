"""The frontier that ships: what was asked is what was told, and a run today says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import Damaged, NewerVersion
from engine.examples import sweep
from engine.results.report import report
from engine.results.summary import point_result, summaries
from engine.training.loop import run
from tests.engine.makers import ask


def test_what_ships_answers_what_is_asked() -> None:
    ship = sweep.frontier()
    assert ship is not None
    assert [one.point.id for one in ship.results] == [point.id for point in sweep.questions()]
    assert set(ship.titles) == {one.point.method for one in ship.results}
    found = summaries(ship.results)
    assert {spot.seeds for spot in found} == {3} and len({spot.method for spot in found}) == 5
    for spot in found:
        assert (spot.unit is None) == (spot.noise is None)
        assert spot.unit is None or spot.dearest("outsider") is not None


@pytest.mark.slow
def test_a_point_run_today_comes_to_what_ships() -> None:
    ship = sweep.frontier()
    assert ship is not None
    told = {one.point.id: one for one in ship.results}
    todo = [point for point in sweep.questions() if point.seed == 0 and point.noise in (2.0, None)]
    for point in {point.method: point for point in todo}.values():
        today = point_result(point, report(run(point.spec, threads=2)))
        then = told[point.id]
        assert today is not None
        assert (today.accuracy, today.personal) == pytest.approx((then.accuracy, then.personal), abs=1e-5)
        assert {view: value for view, value in today.epsilon.items() if value} == pytest.approx(
            {view: value for view, value in then.epsilon.items() if value}, rel=1e-3
        )
        assert (today.unit, today.why, today.delta) == (then.unit, then.why, then.delta)


def test_it_is_made_for_real_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"sampling": "poisson", "rounds": 1, "clients": 20, "sampled": 2, "epochs": 1, "batch": 200}
    asked = {"run": question, "methods": ["udp-fedavg", "ppsgd", "fedavg"], "noises": [1.0], "steps": [], "seeds": 1}
    (tmp_path / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    monkeypatch.setattr(sweep, "ASKED", tmp_path / "asked.json")
    monkeypatch.setattr(sweep, "TOLD", tmp_path / "new" / "told.json")
    told = ask("gallery frontier --json")
    assert told.code == 0
    rows = {row["method"]: row for row in told.json}
    ship = sweep.frontier()
    assert ship is not None and ship.seconds > 0 and ship.titles["ppsgd"] == "PPSGD"
    for one in ship.results:
        assert one.accuracy == pytest.approx(rows[one.point.method]["accuracy"], abs=1e-5)
        assert rows[one.point.method]["id"] == one.point.id
    noisy, own, plain = ship.results
    assert noisy.accountant["outsider"] == "prv" and noisy.adjacency == "zero-out"
    assert own.personal is not None and noisy.personal is None
    assert plain.point.noise is None and plain.epsilon["server"] is None and "nothing is clipped" in plain.why["server"]


def test_what_cannot_be_read_is_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "told.json"
    monkeypatch.setattr(sweep, "TOLD", file)
    assert sweep.frontier() is None
    for text in ("{", "[]", json.dumps({"format": 1, "made": "2026-01-01", "titles": {}, "terms": [], "points": [{}]})):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery frontier"):
            sweep.read(file)
    file.write_text(json.dumps({"format": 9}), encoding="utf-8")
    with pytest.raises(NewerVersion):
        sweep.read(file)
