"""The options of `sweep`: its methods, the settings that all points share, and the dry run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.main import parser
from engine.cli.sweep import read_points
from engine.jobs.store import Store
from engine.results.report import report
from engine.specs.presets import cell_preset
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepPoint
from tests.engine.makers import SMALL, run_command

CELL = "table-1-emnist-noise-1-fedceo-growing-quick"


def points(options: str) -> tuple[SweepPoint, ...]:
    return read_points(parser().parse_args(["sweep", *options.split()]))


def ids(options: str) -> set[str]:
    return {point.id for point in points(options)}


# --- its methods -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", "--methods fedceo"])
def test_a_preset_keeps_the_parameters_of_its_method(more: str) -> None:
    (point,) = points(f"--preset {CELL} --noises 1 --seeds 1 {more}")
    assert point.spec == RunSpec(**cell_preset(CELL))


def test_the_settings_of_a_preset_apply_to_the_other_methods() -> None:
    fedceo, other = points(f"--preset {CELL} --methods fedceo,udp-fedavg --noises 1 --seeds 1")
    assert fedceo.spec == RunSpec(**cell_preset(CELL))
    assert other.step == fedceo.step != 1.0 and other.spec.rounds == fedceo.spec.rounds


def test_a_file_keeps_the_parameters_of_its_method(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text('{"method": {"name": "fedceo", "every": 3}, "rounds": 7}', encoding="utf-8")
    assert getattr(points(f"--spec {file} --seeds 1")[0].spec.method, "every", None) == 3
    file.write_text('{"rounds": 7}', encoding="utf-8")
    (point,) = points(f"--spec {file} --noises 1 --seeds 1 --methods fedceo --set every=4")
    assert (point.spec.rounds, getattr(point.spec.method, "every", None)) == (7, 4)


def test_without_methods_it_is_the_method_of_the_spec_or_the_default() -> None:
    assert {point.method for point in points("")} == {"udp-fedavg"}
    assert {point.method for point in points("--method dp-fedavg")} == {"dp-fedavg"}
    assert {point.method for point in points("--method dp-fedavg --methods fedceo,fedavg")} == {"fedceo", "fedavg"}


@pytest.mark.parametrize("more", ["", "--delta 1e-5", "--sampling auto"])
def test_the_order_of_the_methods_changes_nothing(more: str) -> None:
    names = ("fedavg", "udp-fedavg", "dp-fedavg")
    forward = ids(f"--methods {','.join(names)} --noises 1 {more}")
    backward = ids(f"--methods {','.join(reversed(names))} --noises 1 {more}")
    assert forward == backward and len(forward) == 9
    assert {point.spec.sampling for point in points(f"--methods {','.join(names)} --noises 1 {more}")} == {"poisson"}


def test_sampling_stays_fixed_without_protection_or_if_it_is_given() -> None:
    assert {point.spec.sampling for point in points("--methods fedavg")} == {"fixed"}
    assert {point.spec.sampling for point in points("--methods fedavg,udp-fedavg --sampling fixed")} == {"fixed"}


# --- fields that the sweep varies --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--of fedceo.noise=3", "must not set noise, which --noises varies, got fedceo.noise=3"),
        ("--of fedceo.name=udp-fedavg", "must not set name, which --methods varies, got fedceo.name=udp-fedavg"),
        ("--of fedceo.server_step=1 --server-steps 0.1,1", "must not set server-step, which --server-steps varies"),
    ],
)
def test_a_field_that_is_varied_is_refused(home: Path, options: str, message: str) -> None:
    result = run_command(f"sweep --methods fedceo {options}")
    assert result.code == 2 and f"sweep: --of: {message}" in result.sentence() and "Use --" in result.err
    assert not home.exists() or Store(home).runs() == []


def test_one_method_takes_its_own_server_step_if_none_are_varied() -> None:
    both = points("--methods fedceo,udp-fedavg --noises 1 --seeds 1 --of fedceo.server-step=0.3")
    assert {point.method: point.step for point in both} == {"fedceo": 0.3, "udp-fedavg": 0.1}


# --- before the first run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--threads 0", "run: threads: must be a whole number between 1 and 256, got 0"),
        ("--device nonsense", "run: device: must be cpu, or cuda"),
    ],
)
@pytest.mark.parametrize("dry", ["", " --dry-run"])
def test_threads_and_devices_that_are_missing_are_refused(home: Path, options: str, message: str, dry: str) -> None:
    result = run_command(f"sweep {SMALL} {options}{dry}")
    assert result.code == 2 and result.out == "" and message in result.sentence() and not home.exists()


def test_a_dry_run_runs_nothing_and_prints_the_forecast(home: Path) -> None:
    command = f"sweep {SMALL} --methods udp-fedavg,fedavg --noises 0.5,2 --seeds 2 --dry-run"
    result = run_command(command)
    assert result.code == 0 and result.err == "" and not home.exists()
    assert re.search(
        r"^udp-fedavg +noise 2 +ε = \S+ in the outsider view \(per user, zero-out, δ = 1e-05, ", result.out, re.M
    )
    assert re.search(
        r"^fedavg +no noise +no finite ε in the outsider view: nothing is clipped or noised$", result.out, re.M
    )
    assert result.out.count("  udp-fedavg: guarantee: formal-other-view: ") == 1
    assert re.search(r"^6 runs, about [\d.]+ s in all\. Finished runs are reused\.$", result.out, re.M)
    body = run_command(f"{command} --json").json
    assert (body["view"], body["runs"], len(body["rows"])) == ("outsider", 6, 3) and body["seconds"] > 0
    runs = {(point.method, point.noise, point.seed): point.id for point in points(command.removeprefix("sweep "))}
    for row in body["rows"]:
        assert row["runs"] == [runs[row["method"], row["noise"], seed] for seed in (0, 1)]
    assert "in the server view" in run_command(f"{command} --view server").out and not home.exists()


def test_a_dry_run_prints_the_problems(home: Path) -> None:
    command = "sweep --dataset cifar10 --clients 4000 --noises 1 --seeds 1 --dry-run"
    result = run_command(command)
    assert result.code == 2 and re.search(r"^udp-fedavg +noise 1 +cannot be run$", result.out, re.M)
    assert (
        re.search(r"^  udp-fedavg: .*4000", result.out, re.M)
        and "4000" in result.sentence()
        and "about" not in result.out
    )
    body = run_command(f"{command} --json").json
    assert body["seconds"] is None and body["rows"][0]["problems"][0]["fatal"] and not home.exists()


@pytest.mark.slow
def test_the_epsilon_of_a_dry_run_is_that_of_the_runs(home: Path) -> None:
    command = f"sweep {SMALL} --methods udp-fedavg --noises 1 --seeds 2 --threads 1 --json"
    (row,) = run_command(f"{command} --dry-run").json["rows"]
    (summary,) = run_command(command).json["spots"]
    for name in ("epsilon", "adjacency", "delta", "accountant", "sampling", "bound"):
        assert row[name] == summary[name]["outsider"]
    runs = Store(home).runs()
    assert {run.id for run in runs} == set(row["runs"])
    assert [run.options for run in runs] == [{"device": "cpu", "threads": 1}] * 2
    reports = [report(event for _, event in Store(home).events(run)) for run in row["runs"]]
    assert row["epsilon"] == max(body["epsilon"]["outsider"] for body in reports)
