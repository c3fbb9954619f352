"""The stored sweep of the first page: one run at several noises, whose pictures, accuracy and ε belong together."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Damaged, NewerVersion
from engine.events import Finished, Judged, Kept, Measured, Pictured, Started
from engine.examples import attacks, files, start, start_gallery
from engine.examples.start import StartExample, StartStop
from engine.leakage.pictures import attack
from engine.results.report import report
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import baseline_of
from engine.specs.run import RunSpec
from engine.training.loop import run

MOST_BYTES = 1_500_000


@pytest.fixture(scope="module")
def example() -> StartExample:
    stored = start.start_example()
    assert stored is not None, start.load_error()
    return stored


def without_strength(spec: Any) -> dict[str, Any]:
    """A run without what may differ between stops. The format follows from the noise."""
    method = {name: value for name, value in spec["method"].items() if name not in ("noise", "server-step")}
    return {**spec, "method": method, "format": 0}


def test_picture_accuracy_and_epsilon_of_a_stop_are_of_one_run(example: StartExample) -> None:
    for stop in (*example.stops, example.baseline):
        events = stop.run.events
        started = events[0]
        assert isinstance(started, Started)
        ids = {RunSpec(**stop.run.spec).id, stop.run.id, started.run}
        for cell in example.cells(stop, "server", "1"):
            attacked = AttackSpec(**cell.spec)
            ids.add(attacked.run.id)
            assert attacked.id == cell.id and attacked.round == "last" and attacked.pictures == ("portrait-0",)
        assert len(ids) == 1
        body = report(events)
        epsilon = stop.epsilon("server")
        assert epsilon is not None and (stop.accuracy, epsilon.value) == (body["accuracy"], body["epsilon"]["server"])
        rounds = [event.round for event in events if isinstance(event, Measured) and event.name == "accuracy"]
        assert set(rounds) == set(range(1, 31))


def test_the_stops_differ_in_noise_and_server_step_only(example: StartExample) -> None:
    request = start_gallery.read_request()
    assert tuple(stop.noise for stop in example.stops) == request.noises
    specs = [without_strength(stop.run.spec) for stop in example.stops]
    assert all(spec == specs[0] for spec in specs)
    for stop in example.stops:
        for seed, of_seed in enumerate(stop.runs):
            assert of_seed.spec == start_gallery.run_spec(request, stop.noise, stop.step, seed).canonical()
            baseline = baseline_of(RunSpec(**of_seed.spec))
            assert baseline is not None and baseline.id == of_seed.baseline == example.baseline.runs[seed].id


def test_the_server_step_of_a_stop_is_the_best_of_those_tried(example: StartExample) -> None:
    for stop in example.stops:
        assert set(stop.tried) == set(start_gallery.read_request().steps)
        assert stop.tried[stop.step] == pytest.approx(stop.accuracies, abs=1e-3)
        assert sum(stop.tried[stop.step]) == max(map(sum, stop.tried.values()))


def test_the_server_step_with_the_best_mean_is_chosen() -> None:
    request = replace(start_gallery.read_request(), noises=(0.1, 2.0), steps=(0.1, 0.3, 1.0), seeds=2)
    accuracies = {
        0.1: {0.1: (0.5, 0.6), 0.3: (0.9, 0.1), 1.0: (0.2, 0.3)},
        2.0: {0.1: (0.1, 0.1), 0.3: (0.4, 0.2), 1.0: (0.1, 0.6)},
    }

    class SerialPool:
        def map(self, work: object, specs: list[RunSpec]) -> list[start_gallery.RecordedRun]:
            assert work is start_gallery.record
            runs = []
            for spec in specs:
                method = spec.method.values()
                accuracy = accuracies[method["noise"]][method["server-step"]][spec.seed]
                events = (Measured(29, "accuracy", 0.0), Measured(30, "accuracy", accuracy))
                runs.append(start_gallery.RecordedRun(spec, events, [], Kept("state", "state-29", 29)))
            return runs

    chosen = start_gallery._chosen_stops(request, SerialPool())  # type: ignore[arg-type]
    assert [(stop.noise, stop.step) for stop in chosen] == [(0.1, 0.1), (2.0, 1.0)]
    for stop in chosen:
        assert dict(stop.tried) == accuracies[stop.noise]
        assert tuple(run.accuracy for run in stop.runs) == accuracies[stop.noise][stop.step]


def test_every_requested_attack_ships_once(example: StartExample) -> None:
    request = start_gallery.read_request()
    requested = [spec for stop in example.stops for spec in start_gallery.attack_specs(request, run_of(stop))]
    requested += start_gallery.attack_specs(request, run_of(example.baseline), start_gallery.of_baseline(request))
    assert [cell.id for cell in example.attacks] == [spec.id for spec in requested]
    assert start.RESULT_FILE.stat().st_size <= MOST_BYTES
    placed = [
        cell.id
        for stop in (*example.stops, example.baseline)
        for view in ("server", "client", "outsider")
        for upload in start.UPLOADS
        for cell in example.cells(stop, view, upload)
    ]
    assert sorted(placed) == sorted(cell.id for cell in example.attacks)
    for cell in example.attacks:
        assert sum(isinstance(event, Pictured) for event in cell.events) == 1 and isinstance(cell.events[-1], Finished)


def run_of(stop: StartStop) -> RunSpec:
    return RunSpec(**stop.run.spec)


def test_its_runs_and_attacks_are_found_by_id(example: StartExample) -> None:
    for of_stop in example.runs:
        stored = files.example(of_stop.id)
        assert stored is not None and stored.id == of_stop.id
    listed = {each.id for each in files.examples()}  # its baseline is a preset, too
    assert not {of_seed.id for stop in example.stops for of_seed in stop.runs} & listed
    assert {cell.id for cell in example.attacks} <= set(attacks.stored())


@pytest.mark.slow
def test_a_run_and_an_attack_today_give_the_results_that_ship(example: StartExample) -> None:
    stop = example.stops[4]
    body = report(run(RunSpec(**stop.run.spec)))
    assert body["accuracy"] == pytest.approx(stop.accuracy, abs=1e-3)
    epsilon = stop.epsilon("outsider")
    assert epsilon is not None and body["epsilon"]["outsider"] == pytest.approx(epsilon.value, rel=1e-3)
    (cell,) = (cell for cell in example.cells(stop, "server", "1") if cell.spec["attack"]["name"] == "analytic")
    actual = next(event for event in attack(AttackSpec(**cell.spec)) if isinstance(event, Judged))
    shipped = next(event for event in cell.events if isinstance(event, Judged))
    assert actual.state == shipped.state
    assert actual.numbers["psnr"][0] == pytest.approx(shipped.numbers["psnr"][0], abs=0.1)


@pytest.mark.slow
def test_an_unreadable_file_gives_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json.xz"
    monkeypatch.setattr(start, "RESULT_FILE", file)
    assert start.start_example() is None and not start.runs() and not start.attacks()
    body = json.loads(lzma.decompress((start.REQUEST_FILE.parent / "results.json.xz").read_bytes()))
    no_curve = json.loads(json.dumps(body))
    of_run = no_curve["stops"][0]["runs"][0]
    of_run["events"] = [event for event in of_run["events"] if event.get("name") != "accuracy"]
    bodies: list[Any] = [[], {"format": 1}, {**body, "stops": [{"noise": "x"}]}, no_curve]
    for damaged in bodies:
        file.write_bytes(lzma.compress(json.dumps(damaged).encode()))
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery start"):
            start.read(file)
        start.read.cache_clear()
    file.write_bytes(lzma.compress(json.dumps({"format": 9}).encode()))
    with pytest.raises(NewerVersion):
        start.read(file)
