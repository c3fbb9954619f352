"""An exported sweep has every point of its runs, and the command that repeats exactly these runs."""

from __future__ import annotations

import shlex

import pytest

from app.export import sweep_command, sweep_content
from app.export.served import served_export
from app.texts import privacy
from app.texts import sweep as sweep_texts
from engine.cli.main import parser
from engine.cli.sweep import read_points
from engine.examples import files, sweep
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.store import Store
from engine.specs import attack_grid
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, SweepPoint, points
from tests.app.export.makers import RUN, Node, parsed, stored_run

GRID = SweepGrid(({"name": "udp-fedavg"}, {"name": "fedavg"}), (0.5, 1.0), (0, 1))


def swept() -> tuple[SweepPoint, ...]:
    return points(RunSpec(**RUN), GRID)


def shown(store: Store, kind: str, id: str, view: str = "outsider") -> Node:
    exported = served_export(store, kind, id, "", view)
    assert exported.status == 200, exported.text
    return parsed(exported.text)


def test_a_batch_of_runs_has_every_point_and_says_what_is_missing(store: Store) -> None:
    members = swept()
    batch = Batch("sweep", "", tuple(BatchMember(point.id, point.spec.canonical()) for point in members))
    store.batches.request(batch)
    for point in members[:-1]:
        stored_run(store, point.spec)
    node = shown(store, "batch", batch.id)
    assert "5 of 6 runs finished. The others: 1 waiting." in node.text
    (table,) = [table for table in node.all("table") if table.attributes.get("class") == "points"]
    rows = [[cell.text for cell in row.inside if isinstance(cell, Node)] for row in table.all("tr")[1:]]
    assert [row[:2] + row[5:6] for row in rows] == [
        ["UDP-FedAvg", "0.5", "2"], ["UDP-FedAvg", "1", "2"], ["FedAvg", "none", "1"],
    ]  # fmt: skip
    assert rows[0][6] == "ε 3 · limited promise" and "δ = 1e-5" in rows[0][7]  # the larger ε of the two seeds
    assert "server step with the best accuracy" not in node.text  # there is one step
    assert len([svg for svg in node.all("svg") if svg.attributes.get("class") == "chart"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("view", privacy.VIEWS)
def test_the_stored_sweep_is_shown_for_each_observer(store: Store, view: str) -> None:
    node = shown(store, "example", sweep.NAME, view)
    assert privacy.SEEN_BY[view] in node.text and "come from a stored example" in node.text
    assert node.all("h1")[0].text == "What does protection cost? Fashion-MNIST, MLP, 30 rounds"


def test_a_single_point_has_a_tick_at_its_epsilon(store: Store) -> None:
    run = stored_run(store, RunSpec(**RUN))
    labels = [text.text for text in shown(store, "sweep", run, "server").all("text")]
    assert "154" in labels and "40" in labels


@pytest.mark.slow
def test_personal_models_are_named(store: Store) -> None:
    exported = served_export(store, "example", sweep.NAME, "", "server", "personal")
    assert sweep_texts.OWN_MODELS in parsed(exported.text).text


def test_the_command_starts_exactly_these_runs() -> None:
    requested = sweep.requested_points()
    command = sweep_command.command([point.spec for point in requested], "server")
    repeated = read_points(parser().parse_args(shlex.split(command)[3:]))
    assert {point.id for point in repeated} == {point.id for point in requested}
    assert sweep_command.command([point.spec for point in requested[:-1]], "server") == ""


def test_two_versions_of_one_method_are_two_lines() -> None:
    specs = [
        RunSpec(**{**RUN, "method": {"name": "udp-fedavg", "noise-split": split}}) for split in ("paper", "full-local")
    ]
    runs = [sweep_content.FoundRun(spec.id, spec, "finished", {"accuracy": 0.5, "unit": "user"}) for spec in specs]
    titles = sweep_content.sweep(runs).titles
    assert sorted(titles.values()) == ["UDP-FedAvg (noise split full-local)", "UDP-FedAvg (noise split paper)"]


def test_runs_that_differ_in_more_than_a_sweep_are_refused(store: Store) -> None:
    ids = [stored_run(store, RunSpec(**{**RUN, "rounds": rounds})) for rounds in (4, 5)]
    exported = served_export(store, "sweep", ",".join(ids), "")
    assert exported.status == 409 and "must differ only in" in exported.text
    assert served_export(store, "sweep", f"{ids[0]},deadbeef", "").status == 404
    assert served_export(store, "sweep", ids[0], "").status == 200


@pytest.mark.parametrize("field", ["target-epsilon", "budget", "view", "delta", "honest-share"])
def test_runs_of_different_promises_are_refused(store: Store, field: str) -> None:
    values = {"target-epsilon": (3, 8), "budget": (3, 8), "view": ("outsider", "server"), "delta": (1e-6, 1e-7)}
    shared = {"view": "outsider", "budget": 9} if field in ("target-epsilon", "budget", "view") else {}
    ids = []
    for value in values.get(field, (1.0, 0.5)):
        ids.append(stored_run(store, RunSpec(**{**RUN, **shared, field: value})))
    exported = served_export(store, "sweep", ",".join(ids), "")
    assert exported.status == 409 and f"these also differ in {field}." in exported.text


def test_runs_with_one_target_epsilon_have_it_in_their_title(store: Store) -> None:
    run = RunSpec(**{**RUN, "target-epsilon": 8, "view": "outsider"})
    baseline = attack_grid.baseline_of(run)
    assert baseline is not None
    ids = [stored_run(store, spec, noise=0.81234) for spec in (run, run.with_(seed=1))]
    ids.append(stored_run(store, baseline))
    node = shown(store, "sweep", ",".join(ids))
    (table,) = [table for table in node.all("table") if table.attributes.get("class") == "points"]
    rows = [[cell.text for cell in row.inside if isinstance(cell, Node)] for row in table.all("tr")[1:]]
    assert [row[:2] + row[5:6] for row in rows] == [["UDP-FedAvg at ε 8", "0.812", "2"], ["FedAvg", "none", "1"]]


@pytest.mark.parametrize("example", files.examples(), ids=lambda example: example.name)
def test_every_run_example_has_a_page(store: Store, example: files.RunExample) -> None:
    node = shown(store, "example", example.name)
    assert example.id in node.text and f"Example {example.name}" in node.text
    assert "python3 -m engine run" in node.text
