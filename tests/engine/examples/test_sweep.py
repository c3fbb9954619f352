"""The sweep that ships: it has a result for every point, and a run today gives the same result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import Damaged, NewerVersion
from engine.examples import sweep
from engine.results.report import report
from engine.results.summary import point_result, summaries
from engine.training.loop import run
from tests.engine.makers import run_command


def test_every_requested_point_ships() -> None:
    example = sweep.sweep_example()
    assert example is not None
    assert [result.point.id for result in example.results] == [point.id for point in sweep.requested_points()]
    assert set(example.titles) == {result.point.method for result in example.results}
    of_sweep = summaries(example.results)
    assert {summary.seeds for summary in of_sweep} == {3} and len({summary.method for summary in of_sweep}) == 5
    for summary in of_sweep:
        assert (summary.unit is None) == (summary.noise is None)
        assert summary.unit is None or summary.finite_epsilon("outsider") is not None


@pytest.mark.slow
def test_a_point_today_gives_the_result_that_ships() -> None:
    example = sweep.sweep_example()
    assert example is not None
    shipped = {result.point.id: result for result in example.results}
    selected = [point for point in sweep.requested_points() if point.seed == 0 and point.noise in (2.0, None)]
    for point in {point.method: point for point in selected}.values():
        actual = point_result(point, report(run(point.spec, threads=2)))
        expected = shipped[point.id]
        assert actual is not None
        assert (actual.accuracy, actual.personal) == pytest.approx((expected.accuracy, expected.personal), abs=1e-5)
        assert actual.unit == expected.unit and actual.epsilons.keys() == expected.epsilons.keys()
        for view, epsilon in actual.epsilons.items():
            shipped_epsilon = expected.epsilons[view]
            assert replace(epsilon, value=shipped_epsilon.value) == shipped_epsilon
            assert (epsilon.value or 0) == pytest.approx(shipped_epsilon.value or 0, rel=1e-3)


def test_the_command_computes_the_sweep_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"sampling": "poisson", "rounds": 1, "clients": 20, "sampled": 2, "epochs": 1, "batch": 200}
    request = {"run": base, "methods": ["udp-fedavg", "ppsgd", "fedavg"], "noises": [1.0], "steps": [], "seeds": 1}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    monkeypatch.setattr(sweep, "REQUEST_FILE", tmp_path / "request.json")
    monkeypatch.setattr(sweep, "RESULT_FILE", tmp_path / "new" / "answer.json")
    answer = run_command("gallery frontier --json")
    assert answer.code == 0
    rows = {row["method"]: row for row in answer.json}
    example = sweep.sweep_example()
    assert example is not None and example.seconds > 0 and example.titles["ppsgd"] == "PPSGD"
    for result in example.results:
        assert result.accuracy == pytest.approx(rows[result.point.method]["accuracy"], abs=1e-5)
        assert rows[result.point.method]["id"] == result.point.id
    noisy, personal, baseline = example.results
    assert (noisy.epsilons["outsider"].accountant, noisy.epsilons["outsider"].adjacency) == ("prv", "zero-out")
    assert personal.personal is not None and noisy.personal is None
    of_server = baseline.epsilons["server"]
    assert baseline.point.noise is None and of_server.value is None and "nothing is clipped" in of_server.reason


def test_an_unreadable_file_gives_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setattr(sweep, "RESULT_FILE", file)
    assert sweep.sweep_example() is None
    for text in ("{", "[]", json.dumps({"format": 1, "made": "2026-01-01", "titles": {}, "terms": [], "points": [{}]})):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery frontier"):
            sweep.read(file)
    file.write_text(json.dumps({"format": 9}), encoding="utf-8")
    with pytest.raises(NewerVersion):
        sweep.read(file)
